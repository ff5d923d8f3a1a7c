from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, Runtime, server_facts
from rolling_chat.agent.request import prompt_counter
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import Opened, Script, ScriptedProvider, make_runtime
from tests.support.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for servers nearby as long as a busy machine takes."""
    monkeypatch.setattr(server_facts, "_PATIENCE", PATIENCE_SECONDS)
    monkeypatch.setattr(prompt_counter, "_PATIENCE", PATIENCE_SECONDS)
    monkeypatch.setattr(prompt_counter, "_NEAR_PATIENCE", PATIENCE_SECONDS)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens a chat whose model answers by the scripts given; agent settings by keyword."""
    runtimes: list[Runtime] = []

    def open_chat(
        *scripts: Script, window: int = 32_000, **agent: Any
    ) -> tuple[Chat, Runtime, ScriptedProvider]:
        provider = ScriptedProvider(*scripts)
        settings = Settings(agent=AgentSettings(**agent))
        runtime = make_runtime(tmp_path, provider, settings=settings, window=window)
        runtimes.append(runtime)
        return Chat.open(runtime), runtime, provider

    yield open_chat
    for runtime in runtimes:
        runtime.store.close()
