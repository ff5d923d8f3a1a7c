"""A server that counts too little is found out by its first refusal, and believed no more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, TurnEnded
from rolling_chat.messages import Usage
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, says

WINDOW = 8_192
LONG = "Lorem ipsum dolor sit amet. " * 500  # some 3,700 tokens by the provider below
SETTINGS = Settings(
    agent=AgentSettings(tools="none"), context=ContextSettings(reserved_output_tokens=200, summarize="off")
)


class FalseCounter(ScriptedProvider):
    """Counts a share of what its requests have, reports and refuses by all of it."""

    def __init__(self, share: float, *, is_named: bool) -> None:
        super().__init__(says("So it is."))
        self.share = share
        self.is_named = is_named
        self.refusals = 0

    def tokens(self, request: Request) -> int:
        return sum(len(str(one["content"])) + 20 for one in self.wire_form(request)) // 4

    async def count_tokens(self, request: Request, seconds: float) -> int:
        self.counted.append(request)
        return int(self.tokens(request) * self.share)

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        tokens = self.tokens(request)
        if tokens >= WINDOW:
            self.refusals += 1
            limit, requested = (WINDOW, tokens) if self.is_named else (None, None)
            raise ProviderError(ErrorKind.TOO_LONG, "too long", limit=limit, requested=requested)
        async for delta in super().stream(request):
            yield replace(delta, usage=Usage(tokens, 5)) if isinstance(delta, Finished) else delta


def _runtime(folder: Path, provider: ScriptedProvider) -> Runtime:
    runtime = make_runtime(folder, provider, settings=SETTINGS, window=WINDOW)
    models = {MODEL: ModelSettings(api_base="http://127.0.0.1:9/v1", max_input_tokens=WINDOW)}
    runtime.settings = replace(runtime.settings, models=MappingProxyType(models))
    return runtime


async def _send(chat: Chat, text: str) -> TurnEnded:
    ended = (await collect(chat.send(text)))[-1]
    assert isinstance(ended, TurnEnded)
    return ended


@pytest.mark.parametrize("share", [0.35, 0.67])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
async def test_one_refusal_ends_the_belief_in_counts(tmp_path: Path, share: float, *, is_named: bool) -> None:
    provider = FalseCounter(share, is_named=is_named)
    runtime = _runtime(tmp_path, provider)
    chat = Chat.open(runtime, rolling=True)
    for _ in range(5):
        assert (await _send(chat, LONG)).outcome is Outcome.DONE
    assert provider.refusals == 1
    asked = len(provider.counted)

    other = Chat.open(runtime, rolling=False)  # what was learned is the model's and not the session's
    assert (await _send(other, LONG)).outcome is Outcome.DONE
    assert (await _send(other, LONG * 2)).outcome is Outcome.FULL
    assert (provider.refusals, len(provider.counted)) == (1, asked)
    runtime.store.close()


async def test_what_was_counted_too_low_is_not_in_the_store_either(tmp_path: Path) -> None:
    provider = FalseCounter(0.35, is_named=False)
    runtime = _runtime(tmp_path, provider)
    chat = Chat.open(runtime, rolling=False)
    await _send(chat, LONG)
    assert (await _send(chat, LONG * 2)).outcome is Outcome.FULL
    bound = chat.session.preview.report().bound
    chat.session.close()

    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    await again.session.preview.ready()
    assert again.session.preview.report().bound == pytest.approx(bound, rel=0.02)
    assert (await _send(again, "And now?")).outcome is Outcome.FULL
    assert provider.refusals == 1
    runtime.store.close()
