"""Scrolling the transcript, and reading it by keys with a cursor that moves, selects and copies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from textual import events
from textual.widget import Widget

from rolling_chat.commands.copy import code_block_at
from rolling_chat.figures import plural
from rolling_chat.text import visible
from rolling_chat.tui.controllers.background import Workplace
from rolling_chat.tui.keymap import KeyHint
from rolling_chat.tui.state.items import FOLDED_KINDS, Item, Kind
from rolling_chat.tui.terminal.external import ExternalError, edit_text, page_text
from rolling_chat.tui.transcript.cursor import By, Cursor
from rolling_chat.tui.transcript.selection import Point, line_at
from rolling_chat.tui.transcript.viewport import MESSAGES
from rolling_chat.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from textual.app import App

    from rolling_chat.tui.controllers.find_controller import FindController
    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.prompt_box import PromptBox

_ROWS = {"up": -1, "k": -1, "down": 1, "j": 1}
_EDGES = {"home": -1, "g": -1, "ctrl+home": -1, "end": 1, "G": 1, "ctrl+end": 1}
_ITEMS = {"p": (-1, MESSAGES), "n": (1, MESSAGES), "u": (-1, (Kind.USER,)), "U": (1, (Kind.USER,))}
_ALONG: dict[str, tuple[int, By]] = {
    "left": (-1, "character"),
    "right": (1, "character"),
    "ctrl+left": (-1, "word"),
    "ctrl+right": (1, "word"),
    "ctrl+a": (-1, "edge"),
    "ctrl+e": (1, "edge"),
}
_SHIFTED: dict[str, tuple[int, By]] = {
    **{key.replace("ctrl+", "ctrl+shift+"): how for key, how in _ALONG.items() if "ctrl" in key},
    "shift+left": (-1, "character"),
    "shift+right": (1, "character"),
    "shift+home": (-1, "edge"),
    "shift+end": (1, "edge"),
}
_NO_CODE = "There is no code block under the cursor."
_A_COPY = "The editor opened a copy: the message is unchanged."


class ReadingStage(Workplace, Protocol):
    """The part of the screen that reading by keys uses."""

    state: ScreenState
    finding: FindController
    selections: Any

    @property
    def app(self) -> App[Any]:
        """The app, which suspends itself while an editor or pager has the terminal."""
        ...

    @property
    def transcript(self) -> Transcript:
        """The transcript, which is read."""
        ...

    @property
    def prompt(self) -> PromptBox:
        """The prompt box, which receives typed text."""
        ...

    @property
    def focused(self) -> Widget | None:
        """The widget that has the focus."""
        ...

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True) -> None:
        """Focus a widget."""
        ...

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now."""
        ...

    def default_focus(self) -> Widget:
        """Return the default focus."""
        ...

    def get_selected_text(self) -> str | None:
        """Return the selected text."""
        ...

    def clear_selection(self) -> None:
        """Clear the selection."""
        ...

    def copies_later(self, copy: Callable[[str], object]) -> bool:
        """Copy a long selection in the background; return False for one that is available at once."""
        ...

    def copy(self, text: str) -> bool:
        """Copy `text` to the clipboard; return whether it got there."""
        ...


class ReadingController:
    """Scrolls the transcript, and handles its cursor and selection while it is read by keys.

    Any other typing goes to the prompt box.
    """

    def __init__(self, stage: ReadingStage) -> None:
        self._stage = stage
        self._mark: Point | None = None  # where a selection by keys began
        self._extends = False  # plain movement keys select, too
        self._actions: dict[str, Callable[[Cursor], None]] = {
            "enter": self._fold,
            "v": self._select_by_keys,
            "y": self._copy_selected,
            "c": self._copy_code,
            "m": self._copy_message,
            "e": partial(self._open, is_editor=True),
            "o": partial(self._open, is_editor=False),
        }

    @property
    def is_on(self) -> bool:
        """Whether the transcript is being read by keys."""
        return self._view.cursor is not None

    @property
    def hints(self) -> list[KeyHint]:
        """The keys that work while the transcript is read, with what they do."""
        if self._extends:
            return [("↑↓←→", "select"), ("y", "copy"), ("esc", "end")]
        return [
            ("esc", "back"),
            ("↑↓", "move"),
            ("n/p", "messages"),
            ("v", "select"),
            ("y", "copy"),
            ("/", "find"),
            ("c", "code"),
            ("m", "message"),
            ("enter", "open"),
            ("e", "editor"),
            ("o", "pager"),
            ("u/U", "yours"),
            ("g/G", "ends"),
        ]

    @property
    def _view(self) -> Transcript:
        return self._stage.transcript

    def begin(self) -> None:
        """Start reading by keys at the last visible row that has text; end it if it is already on."""
        view = self._view
        rows = [row for row in view.viewport.rows if row.line.text.strip()]
        if self.is_on or not rows:
            self.end()
            return
        view.read_from(rows[-1].position)
        view.takes_key = self.key
        self._stage.set_focus(view, scroll_visible=False)
        self._stage.state.changed()

    def end(self) -> None:
        """Stop reading by keys and focus the prompt box, without scrolling."""
        self._release()
        self._stage.take_focus()
        self._stage.state.changed()

    def focus_moved(self, widget: Widget) -> None:
        """Stop reading by keys when another widget gets the focus, unless the find bar is open."""
        if self.is_on and widget is not self._view and not self._stage.finding.is_open:
            self._release()

    def _write_on(self) -> Widget:
        """Stop reading by keys; focus and return the widget for typed text."""
        self.end()
        owner = self._stage.default_focus()
        self._stage.set_focus(owner, scroll_visible=False)
        return owner

    def _release(self) -> None:
        self._mark, self._extends, self._stage.state.said = None, False, ""
        self._view.read_from(None)
        self._view.refresh()

    def key(self, event: events.Key) -> bool:
        """Handle a key while the transcript is read; return whether it did anything."""
        cursor, key = self._view.cursor, event.character if event.is_printable else event.key
        self._stage.state.said = ""
        owner = self._stage.focused
        if cursor is None or owner is not self._view:  # typed before the focus moved
            # never back to the transcript, which passed the key here
            return self._forward(event, self._write_on() if owner in (None, self._view) else owner)
        if key == "escape":
            self._cancel()
        elif key == "/":
            self._stage.finding.open()
        elif key in self._actions:
            self._actions[key](cursor)
        elif self._moves(cursor, key or ""):
            self._view.cursor_moved()
        elif event.is_printable:
            return self._forward(event, self._write_on())
        else:
            return False
        self._stage.state.changed()
        return True

    def pasted(self, text: str) -> None:
        """While the transcript is read by keys, end that and insert the pasted text in the prompt box."""
        if self.is_on:
            self._write_on()
            self._stage.prompt.take_in(text)

    def page(self, pages: int) -> None:
        """Scroll by pages and move the cursor along."""
        cursor, view = self._view.cursor, self._view
        if cursor is None:
            return
        self._before(cursor, selects=self._extends)
        above = view.viewport.top
        view.scroll_pages(pages)
        left = pages * max(1, view.viewport.height - 2) - (view.viewport.top - above)
        cursor.by_rows(view.viewport.top - above if not left else pages * view.viewport.height)
        self._after(cursor)

    def _move(self, how: Callable[[Cursor], object]) -> None:
        """Move the cursor by a key that also works while the transcript is not read."""
        cursor = self._view.cursor
        if cursor is not None:
            self._before(cursor, selects=self._extends)
            how(cursor)
            self._after(cursor)

    def copies(self) -> bool:
        """Copy the selection, or the cursor's line; return False if the transcript is not being read."""
        if self._view.cursor is None:
            return False
        self._copy_selected(self._view.cursor)
        return True

    # -- moving

    def move_by(self, how: str, step: int) -> None:
        """Scroll by pages, lines, messages, the user's messages or to an edge, and move the cursor along."""
        view = self._view
        kinds = MESSAGES if how == "messages" else (Kind.USER,)
        match how:
            case "lines":
                view.move_lines(step)
            case "pages" if self.is_on:
                self.page(step)
            case "pages":
                view.scroll_pages(step)
            case "edge" if self.is_on:
                self._move(lambda cursor: cursor.to_edge(step))
            case "edge":
                (view.scroll_to_start if step < 0 else view.scroll_to_newest)()
            case _ if self.is_on:
                self._move(lambda cursor: cursor.by_items(step, kinds))
            case _:
                view.scroll_items(step, kinds)
        self._stage.state.changed()

    # -- moving the cursor and selecting

    def _moves(self, cursor: Cursor, key: str) -> bool:
        if key in ("pageup", "pagedown"):
            self.page(-1 if key == "pageup" else 1)
            return True
        shifted = key in _SHIFTED or key in ("shift+up", "shift+down")
        self._before(cursor, selects=shifted or self._extends)
        if key in _ROWS or key in ("shift+up", "shift+down"):
            cursor.by_rows(_ROWS[key.removeprefix("shift+")])
        elif key in _EDGES:
            cursor.to_edge(_EDGES[key])
            if _EDGES[key] > 0:
                cursor.along(1, "edge")
        elif key in _ITEMS:
            step, kinds = _ITEMS[key]
            if not cursor.by_items(step, kinds) and step > 0:
                cursor.to_edge(1)
        elif key in _ALONG or key in _SHIFTED:
            cursor.along(*(_ALONG.get(key) or _SHIFTED[key]))
        else:
            return False
        self._after(cursor)
        return True

    def _before(self, cursor: Cursor, *, selects: bool) -> None:
        """Start or clear the selection before the cursor moves."""
        if not self._stage.selections:
            self._mark = self._mark if self._extends else None
        if selects:
            self._mark = self._mark or cursor.point
        elif self._mark is not None:
            self._mark = None
            self._stage.clear_selection()

    def _after(self, cursor: Cursor) -> None:
        if self._mark is not None:
            self._view.select(self._mark, cursor.point)
        self._view.cursor_moved()

    def _select_by_keys(self, cursor: Cursor) -> None:
        self._extends = not self._extends
        self._mark = cursor.point if self._extends else self._mark

    def _cancel(self) -> None:
        """Clear the selection, or stop reading if there is none."""
        if self._mark is None and not self._extends:
            self.end()
        self._end_selection()

    def _forward(self, event: events.Key, owner: Widget) -> bool:
        owner.post_message(type(event)(event.key, event.character))
        return True

    # -- taking

    def _fold(self, cursor: Cursor) -> None:
        if cursor.item.kind in FOLDED_KINDS:
            self._view.turn(cursor.point.position.ordinal)
            self._view.cursor_moved()

    def _copy_selected(self, cursor: Cursor) -> None:
        if self._stage.copies_later(self._copy_selected_text):
            self._end_selection()
            return
        text = self._stage.get_selected_text()
        if not text:
            rows = self._view.document.forward(cursor.point.position, 1).rows
            if not rows:
                return
            self._view.select(*line_at(self._view.document, rows[0]))
            text = self._stage.get_selected_text() or ""
        self._end_selection()
        self._copy_selected_text(text)

    def _end_selection(self) -> None:
        self._mark, self._extends = None, False
        self._stage.clear_selection()

    def _copy_selected_text(self, text: str) -> None:
        self._copy(text, f"Copied {plural(len(text), 'character')}.")

    def _copy_message(self, cursor: Cursor) -> None:
        text = _text_of(cursor.item)
        self._copy(text, f"Copied the message ({plural(len(text), 'character')}).")

    def _copy_code(self, cursor: Cursor) -> None:
        item = cursor.item
        shown = item.text if item.kind is Kind.ASSISTANT else ""
        drawn = visible(shown, tabs=True)
        if "\r" in shown:
            drawn = drawn.replace("␍", "\n")  # Markdown ends a line there
        line = drawn.count("\n", 0, cursor.source)
        self._stage.work(partial(self._copy_code_at, shown, line))

    async def _copy_code_at(self, text: str, line: int) -> None:
        code = await asyncio.to_thread(code_block_at, text, line)
        if code is None:
            self._say(_NO_CODE)
        else:
            self._copy(code, f"Copied the code block ({plural(len(code), 'character')}).")

    def _copy(self, text: str, line: str) -> None:
        if text and self._stage.copy(text):
            self._say(line)

    def _open(self, cursor: Cursor, *, is_editor: bool) -> None:
        self._stage.work(partial(self._open_outside, _text_of(cursor.item), is_editor=is_editor))

    async def _open_outside(self, text: str, *, is_editor: bool) -> None:
        try:
            if not is_editor:
                await page_text(self._stage.app, text)
            elif await edit_text(self._stage.app, text) != text:
                self._say(_A_COPY)
        except ExternalError as error:
            self._say(str(error))

    def _say(self, line: str) -> None:
        self._stage.state.said = line
        self._stage.state.changed()


def _text_of(item: Item) -> str:
    """Return the text of a message as received; for a tool call, its result."""
    return item.detail or item.text
