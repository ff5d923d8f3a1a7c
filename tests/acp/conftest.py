"""A model server that is scripted, and the program connected to it as an editor starts it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.acp_client import Connected, connected
from tests.support.servers import OpenAIServer

KEY = "sk-right"

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
def start(tmp_path: Path, server: OpenAIServer) -> Start:
    """Start the program with the server's model, and settings as after `-c`."""
    home = tmp_path / "home"
    home.mkdir()

    @asynccontextmanager
    async def start(*settings: str, **more: object) -> AsyncIterator[Connected]:
        argv = [word for setting in settings for word in ("-c", setting)]
        environ = {"OPENAI_BASE_URL": server.api_base, "OPENAI_API_KEY": KEY}
        async with connected(home, "--model", "openai/gpt-4.1", *argv, **{**environ, **more}) as connection:
            yield connection

    return start
