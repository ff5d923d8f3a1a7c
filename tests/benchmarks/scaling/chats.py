"""Chats of many users at once, each with a login, a folder and a store of its own."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, TurnEnded
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.database import Database, Row, Values
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.trust import FolderTrust
from tests.benchmarks.scaling.mix import TURNS, Mix, PacedProvider
from tests.support.agent import MODEL, collect

_WINDOW = 128_000


class User:
    """Somebody at a program of his own, in sessions of a few turns."""

    def __init__(self, address: str, place: Path, seed: int) -> None:
        self._mix = Mix(seed)
        self.provider = PacedProvider()
        folder = place / "work"
        folder.mkdir(parents=True)
        self._mix.fill_folder(folder)
        self.chat = Chat.open(_runtime(address, place, folder, self.provider))
        self._turns = 0

    async def turn(self) -> None:
        """Ask, and wait for the answer; a new session begins where the last one is long enough."""
        if self._turns and self._turns % TURNS == 0:
            self.chat.start_new()
        self._turns += 1
        self.provider.scripts += self._mix.replies()
        *_, ended = await collect(self.chat.send(self._mix.question()))
        assert isinstance(ended, TurnEnded)
        assert ended.outcome is Outcome.DONE, ended

    async def close(self) -> None:
        """Quit the program."""
        await self.chat.disconnect()
        self.chat.dispose()


def _runtime(address: str, place: Path, folder: Path, provider: PacedProvider) -> Runtime:
    environ = {
        "ROLLING_CHAT_HOME": str(place / "home"),
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "OPENAI_API_KEY": "sk-test-of-no-one",
    }
    defaults = Settings()
    settings = replace(
        defaults,
        model=MODEL,
        agent=replace(defaults.agent, approvals="all"),
        context=replace(defaults.context, enabled=True, summarize="off"),
    )
    paths = find_paths(environ)
    facts = {
        "mode": "chat",
        "litellm_provider": "openai",
        "max_input_tokens": _WINDOW,
        "supports_function_calling": True,
    }
    return Runtime(
        settings=settings,
        paths=paths,
        catalog=ModelCatalog({MODEL: facts}),
        store=open_store(address),
        provider=provider,
        folder=folder,
        environ=environ,
        given_trust=FolderTrust(folder, paths, everything=True),
    )


async def all_turns(users: Sequence[User], turns: int, *, at_once: int, pace: float) -> None:
    """Let every user have so many turns, no more than `at_once` at a time."""
    free = asyncio.Semaphore(at_once)

    async def use(user: User) -> None:
        user.provider.a_second = pace
        for _ in range(turns):
            async with free:
                await user.turn()

    await asyncio.gather(*map(use, users))


PIECE, BEAT = "piece", "beat"


@contextmanager
def counted_statements() -> Iterator[Counter[str]]:
    """Count the statements that stores of this process run: `PIECE`, `BEAT`, the others by their beginning.

    Each is a transaction of its own.
    """
    counts: Counter[str] = Counter()
    run = Database.run

    def counting(
        self: Database, statement: str, values: Values | None = None, *, patience: float | None = None
    ) -> list[Row]:
        counts[_kind(statement)] += 1
        return run(self, statement, values, patience=patience)

    with mock.patch.object(Database, "run", counting):
        yield counts


def _kind(statement: str) -> str:
    for name, kind in (("grow_reply(", PIECE), ("SELECT beat(", BEAT)):
        if name in statement:
            return kind
    return " ".join(statement.split())[:60]
