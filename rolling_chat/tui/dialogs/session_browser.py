"""The saved sessions on a screen of their own: choose, preview, rename, fork, delete and undelete."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static

from rolling_chat.commands.base import Browsed
from rolling_chat.text import one_line
from rolling_chat.tui.dialogs.pickers import PickerScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.commands import Choice
    from rolling_chat.commands.base import SessionShelf

_ROOM_FOR_PREVIEW, _PREVIEW_ROWS = 20, 6  # rows: of the lowest screen with a preview, of the preview
_KEYS = "enter open · f2 rename · ctrl+k fork · ctrl+d delete"


class SessionBrowser(PickerScreen[Browsed]):
    """Lists the saved sessions with a preview; returns the chosen one and those to delete."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "rename", show=False, priority=True),
        Binding("ctrl+k", "fork", show=False, priority=True),
        Binding("ctrl+d", "delete", show=False, priority=True),
        Binding("ctrl+r", "undelete", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    SessionBrowser #preview { height: auto; max-height: 5; margin-top: 1; color: $text-muted; }
    """

    def __init__(self, shelf: SessionShelf, *, current: str = "") -> None:
        self._deleted: list[str] = []
        super().__init__(
            "Sessions", (), result=lambda chosen: Browsed(chosen or "", tuple(self._deleted)), current=current
        )
        self._shelf = shelf
        self._renamed = ""  # the session whose title is being typed
        self._query = ""
        self._said = self._count = ""

    def parts(self) -> ComposeResult:
        """Lay out the preview below the list."""
        yield from super().parts()
        yield Static(id="preview", markup=False)

    async def prepare(self) -> None:
        """Read the sessions."""
        await self._read()

    def action_dismiss_none(self) -> None:
        """Stop renaming; without a rename, close the screen without a choice."""
        if self._renamed:
            self._end_renaming()
        else:
            super().action_dismiss_none()

    def action_rename(self) -> None:
        """Let the user type another title for the highlighted session."""
        choice = self.highlighted
        if choice is None or self._renamed:
            return
        box = self.query_one(Input)
        self._renamed, self._query = choice.value, box.value
        with box.prevent(Input.Changed):
            box.value = choice.label
        box.action_select_all()
        self._hint("enter save the title · esc keep the old one")

    async def action_fork(self) -> None:
        """Copy the highlighted session."""
        choice = self.highlighted
        if choice is None or self._renamed:
            return
        fault = await self._shelf.fork(choice.value)
        await self._read()
        self._say(fault or f"copied “{one_line(choice.label, 40)}”")

    async def action_delete(self) -> None:
        """Remove the highlighted session from the list; it is deleted when the screen is closed."""
        choice = self.highlighted
        if choice is None or self._renamed:
            return
        if choice.value == self._current:
            self._say("this session is open: go to another one first")
            return
        self._deleted.append(choice.value)
        await self._read()
        self._say(f"deleted “{one_line(choice.label, 40)}” · ctrl+r brings it back")

    async def action_undelete(self) -> None:
        """Return the session deleted last to the list."""
        if self._deleted and not self._renamed:
            self._deleted.pop()
            await self._read()
            self._say("")

    @on(OptionList.OptionHighlighted)
    def _look(self) -> None:
        choice = self.highlighted
        if choice is not None and self.size.height >= _ROOM_FOR_PREVIEW:
            self._preview(choice.value)

    @work(exclusive=True)
    async def _preview(self, session_id: str) -> None:
        lines = await asyncio.to_thread(self._shelf.preview, session_id)
        text = Text("\n".join(map(one_line, lines)), no_wrap=True, overflow="ellipsis")
        self.query_one("#preview", Static).update(text)

    def narrow(self, query: str, *, at: int | None = None) -> None:
        """List the sessions that match, unless a title is being typed."""
        if not self._renamed:
            super().narrow(query, at=at)

    def take(self, choice: Choice) -> None:
        """Open the chosen session, or save the title that was typed."""
        if not self._renamed:
            super().take(choice)
            return
        self._give_title(self._renamed, self.query_one(Input).value)
        self._end_renaming()

    @work
    async def _give_title(self, session_id: str, title: str) -> None:
        fault = await self._shelf.rename(session_id, title)
        await self._read()
        self._say(fault)

    @property
    def rows_around(self) -> int:
        """The number of rows that the list cannot use, including those of the preview."""
        preview = _PREVIEW_ROWS if self.size.height >= _ROOM_FOR_PREVIEW else 0
        return super().rows_around + preview

    def subtitle(self, count: str) -> str:
        """Return the line below the list: `count`, then the last action or else the keys."""
        self._count = count
        return f"{count}{self._said or _KEYS}"

    def _end_renaming(self) -> None:
        self._renamed, box = "", self.query_one(Input)
        with box.prevent(Input.Changed):
            box.value = self._query
        self.narrow(self._query)

    async def _read(self) -> None:
        """Read the sessions again and list them, keeping the highlighted row."""
        choices = await self._shelf.choices()
        at = self.query_one(OptionList).highlighted
        self._choices = tuple(choice for choice in choices if choice.value not in self._deleted)
        self.narrow(self.query_one(Input).value, at=at)

    def _say(self, line: str) -> None:
        self._said = line
        self._hint(self.subtitle(self._count))

    def _hint(self, line: str) -> None:
        self.query_one(Vertical).border_subtitle = line
