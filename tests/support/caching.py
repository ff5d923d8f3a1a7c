"""Chats over real HTTP with a server whose prompt cache lives by the program's own clock."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from rolling_chat.agent import Chat, Runtime
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from rolling_chat.settings.trust import FolderTrust

QUIET = ContextSettings(summarize="off")


class Clock:
    """The time of the program and of the server's cache, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Place:
    """Runtimes in one folder with one store, whose clock is the server's."""

    def __init__(self, home: Path) -> None:
        self.clock = Clock()
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        self.environ = {
            "ROLLING_CHAT_HOME": str(home / "home"), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
        }  # fmt: skip
        self.paths, self.catalog = find_paths(self.environ), load_catalog()
        self.provider = ModelProvider(environ=self.environ, catalog=self.catalog)
        self.store = open_store(self.paths.database, clock=self.clock)

    def runtime(self, address: str, *models: str, context: ContextSettings, **limits: int) -> Runtime:
        """A runtime with few tools, whose models are all at one address."""
        settings = Settings(
            model=models[0], agent=AgentSettings(tools=("read_file", "recall")), context=context,
            models=MappingProxyType({name: ModelSettings(api_base=address, **limits) for name in models}),
        )  # fmt: skip
        return Runtime(
            settings=settings, paths=self.paths, catalog=self.catalog, store=self.store,
            provider=self.provider, folder=self.folder, environ=self.environ, clock=self.clock,
            given_trust=FolderTrust(self.folder, self.paths, everything=True),
        )  # fmt: skip

    def open(self, address: str, *models: str, context: ContextSettings = QUIET, **limits: int) -> Chat:
        """A new chat with the first of the models."""
        return Chat.open(self.runtime(address, *models, context=context, **limits))

    def resume(self, chat: Chat) -> Chat:
        """The same session, opened anew by another runtime."""
        chat.close()
        runtime = replace(chat._runtime)
        return Chat.open(runtime, session=self.store.session(chat.session.info.id))


@asynccontextmanager
async def opened_place(home: Path) -> AsyncIterator[Place]:
    """A place whose connections and store are closed at the end."""
    place = Place(home)
    try:
        yield place
    finally:
        await place.provider.close()
        place.store.close()
