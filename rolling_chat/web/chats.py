"""The chats behind a browser's tabs: one process each, from which pages can disconnect and reconnect."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from rolling_chat.web.driver import DRIVER

_MAX_CHATS = 16
_LINGER = 60 * 60.0  # seconds that a chat keeps running without a page
_MAX_SIDE = 1_000  # rows or columns of a page


@dataclass(frozen=True, slots=True)
class Page:
    """One open page: functions that write to its terminal and close its connection."""

    write_bytes: Callable[[bytes], Awaitable[None]]
    write_text: Callable[[str], Awaitable[None]]
    close: Callable[[], Awaitable[object]]


class ServedChat(AppService):
    """One chat in a process of its own, shown by at most one page at a time.

    `session` is the id of its session, empty until something of it is saved.
    """

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(
            f"exec {shlex.join(command)}" if sys.platform != "win32" else subprocess.list2cmdline(command),
            write_bytes=self._write_bytes,
            write_str=self._write_text,
            close=self._closed,
            download_manager=DownloadManager(),
        )
        self.session = ""
        self._page: Page | None = None
        self._leaves: asyncio.TimerHandle | None = None
        self._ending: asyncio.Future[None] | None = (
            None  # a reference, so that it is not collected before its end
        )

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._task is not None and not self._task.done()

    @property
    def has_page(self) -> bool:
        """Whether a page shows the chat."""
        return self._page is not None

    async def attach(self, page: Page, width: int, height: int) -> None:
        """Show the chat on a page, and close the page that showed it before."""
        before, self._page = self._page, page
        if self._leaves is not None:
            self._leaves.cancel()
        if before is not None:
            await before.close()
        width, height = _side(width, 80), _side(height, 24)
        if self.is_running:
            await self.set_terminal_size(width, height)
            await self.send_meta({"type": "attach"})
        else:
            await self.start(width, height)

    def detach(self, page: Page) -> None:
        """Keep running after a page has disconnected, for an hour at most."""
        if self._page is page:
            self._page = None
            self._leaves = asyncio.get_running_loop().call_later(_LINGER, self._end_in_background)

    async def stop(self) -> None:
        """Let the chat save itself and end."""
        if self._leaves is not None:
            self._leaves.cancel()
        await super().stop()

    async def on_meta(self, data: bytes) -> None:
        """Record which session is open; leave all other packets to Textual's own server."""
        packet = json.loads(data)
        if packet.get("type") == "session":
            self.session = str(packet.get("id", "")) or self.session
        else:
            await super().on_meta(data)

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        return {**super()._build_environment(width, height), "TEXTUAL_DRIVER": DRIVER}

    def _end_in_background(self) -> None:
        self._ending = asyncio.ensure_future(self.stop())

    async def _write_bytes(self, data: bytes) -> None:
        if self._page is not None:
            await self._page.write_bytes(data)

    async def _write_text(self, text: str) -> None:
        if self._page is not None:
            await self._page.write_text(text)

    async def _closed(self) -> None:
        page, self._page = self._page, None
        if page is not None:
            await page.close()


class Chats:
    """The chats of all tabs, by the name that each tab chose for itself."""

    def __init__(self, options: Sequence[str]) -> None:
        """Start without chats; `options` are the command-line options of each new one."""
        self._options = tuple(options)
        self._chats: dict[str, ServedChat] = {}

    async def for_tab(self, tab: str) -> ServedChat:
        """Return the chat of a tab: the running one, else one with its session, else a new one."""
        chat = self._chats.get(tab)
        if chat is None or not chat.is_running:
            resume = ("--resume", chat.session) if chat is not None and chat.session else ()
            self._chats.pop(tab, None)
            await self._make_room()
            chat = self._chats[tab] = ServedChat(
                [sys.executable, "-m", "rolling_chat", *self._options, *resume]
            )
            chat.session = resume[1] if resume else ""
        return chat

    async def stop(self) -> None:
        """Let all chats save themselves and end."""
        await asyncio.gather(*(chat.stop() for chat in self._chats.values()))

    async def _make_room(self) -> None:
        """End the oldest chats that no page shows. Raises TooManyChatsError if all are shown."""
        while len(self._chats) >= _MAX_CHATS:
            tab = next((tab for tab, chat in self._chats.items() if not chat.has_page), None)
            if tab is None:
                raise TooManyChatsError(f"{_MAX_CHATS} chats are open; close a tab first")
            await self._chats.pop(tab).stop()


class TooManyChatsError(Exception):
    """The maximum number of chats is in use; `str()` is one line for the user."""


def _side(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and 0 < value <= _MAX_SIDE else otherwise
