"""While a server counts, every key is taken at once; what it counted is on the gauge."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import MappingProxyType

from rolling_chat.providers.protocol import Request
from rolling_chat.settings.schema import ModelSettings, Settings
from tests.support.tui import MODEL, ScriptedProvider, draft, make_app, make_chat, shown, wait_until

_COUNTED = re.compile(r"  1\.4k( ±\d%)? / 32k")  # no ~ before it


class SlowCounter(ScriptedProvider):
    """Counts 1,400 tokens, once it is let."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def count_tokens(self, request: Request, seconds: float) -> int:
        self.asked.set()
        await self.answers.wait()
        return 1_400


async def test_keys_are_taken_while_a_server_counts(tmp_path: Path) -> None:
    provider = SlowCounter()
    models = {MODEL: ModelSettings(api_base="http://127.0.0.1:9/v1", max_input_tokens=32_000)}
    settings = Settings(model=MODEL, models=MappingProxyType(models))
    chat = make_chat(tmp_path, settings=settings, provider=provider)
    async with make_app(chat, tmp_path).run_test(size=(100, 24)) as pilot:
        await wait_until(pilot, provider.asked.is_set)
        await pilot.press(*"here")
        assert draft(pilot) == "here"
        await pilot.press(*["backspace"] * 4)
        assert not _COUNTED.search(shown(pilot))
        provider.answers.set()
        await wait_until(pilot, lambda: _COUNTED.search(shown(pilot)))
