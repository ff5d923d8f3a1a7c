"""A model server that is scripted, and the program connected to it as an editor starts it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from acp.schema import ClientCapabilities

from rolling_chat.acp.opening import Opener
from tests.support.acp_client import Connected, connected, connected_here
from tests.support.program import program_environment
from tests.support.servers import OpenAIServer

KEY = "sk-right"
MODEL = "openai/gpt-4.1"

Start: TypeAlias = Callable[..., AbstractAsyncContextManager[Connected]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the editor has open."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    """A server that answers by its script."""
    async with OpenAIServer(key=KEY) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of the program."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def start(home: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the agent in this process with the server's model or another, and settings as after `-c`."""

    @asynccontextmanager
    async def start(
        *settings: str, model: str = MODEL, capabilities: ClientCapabilities | None = None, **more: str
    ) -> AsyncIterator[Connected]:
        for name in list(os.environ):
            if name.endswith("_API_KEY") or name.startswith("ROLLING_CHAT_"):
                monkeypatch.delenv(name)
        for name, value in program_environment(home, **{**_to(server), **more}).items():
            monkeypatch.setenv(name, value)
        async with connected_here(Opener(model, overrides=settings), capabilities) as connection:
            yield connection

    return start


@pytest.fixture
def start_process(home: Path, server: OpenAIServer) -> Start:
    """Start the program as an editor does, with the server's model, and settings as after `-c`."""

    @asynccontextmanager
    async def start(*settings: str, **more: Any) -> AsyncIterator[Connected]:
        argv = [word for setting in settings for word in ("-c", setting)]
        async with connected(home, "--model", MODEL, *argv, **{**_to(server), **more}) as connection:
            yield connection

    return start


def _to(server: OpenAIServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.api_base, "OPENAI_API_KEY": KEY}
