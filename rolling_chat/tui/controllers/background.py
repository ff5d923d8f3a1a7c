"""Work that is done beside the keys: what it is, and how it is not done twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from textual.css.query import NoMatches

if TYPE_CHECKING:
    from rolling_chat.tui.screens.chat import ChatScreen

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Not begun yet: a coroutine would be left over where the screen goes before it is."""


class OneAtATime:
    """Does a work again as often as it is asked for, never twice at once, at last for what stands then."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked = False
        self._free = asyncio.Event()
        self._free.set()

    def ask(self, screen: ChatScreen) -> None:
        """Do it once more."""
        self._asked = True
        if self._free.is_set():
            self._free.clear()
            screen.work(self._run)

    async def ended(self) -> None:
        """Wait until nothing is being done."""
        await self._free.wait()

    async def _run(self) -> None:
        try:
            with suppress(NoMatches):  # the screen may be going already
                while self._asked:
                    self._asked = False
                    await self._work()
        finally:
            self._free.set()
