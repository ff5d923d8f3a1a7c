"""Background work, and a way never to run the same job twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from textual.css.query import NoMatches

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""A factory, because a coroutine would never be awaited if the screen closes first."""


class Workplace(Protocol):
    """A screen that runs background work."""

    def work(self, work: Work) -> object:
        """Run `work` in the background; an unexpected exception in it ends the program."""
        ...


class Coalesced:
    """Coalesce requests: run the job serially, and once more if it was requested while running."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked = False
        self.idle = asyncio.Event()
        self.idle.set()

    def ask(self, place: Workplace) -> None:
        """Request a run of the job."""
        self._asked = True
        if self.idle.is_set():
            self.idle.clear()
            place.work(self._run)

    async def _run(self) -> None:
        try:
            with suppress(NoMatches):  # the screen may be closing
                while self._asked:
                    self._asked = False
                    await self._work()
        finally:
            self.idle.set()
