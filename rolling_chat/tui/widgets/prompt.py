"""The prompt box: a text area in which Enter sends and up and down walk the history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from rolling_chat.commands import complete, find_command
from rolling_chat.text import typed

if TYPE_CHECKING:
    from rolling_chat.tui.controllers.history import History
    from rolling_chat.tui.widgets.completion import Completion

_MOST_ROWS = 6
_FEW_ROWS, _SCREEN_SHARE = 20, 5


class PromptBox(TextArea):
    """Posts what the person sends, and is empty at once: what is typed next is the next message."""

    DEFAULT_CSS = """
    PromptBox {
        height: 1; padding: 0; border: none; background: $background; color: $foreground;
        scrollbar-size-vertical: 1;
    }
    PromptBox:focus { border: none; }
    PromptBox .text-area--cursor-line { background: $background; }
    """

    # ctrl+z, undo in a plain text area, is the shell's here
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+underscore", "undo", show=False)]

    @dataclass
    class Submitted(Message):
        """The person pressed Enter; the text has left the box."""

        text: str

    @dataclass
    class TakeBack(Message):
        """Up in an empty box: a queued message may be wanted back."""

    @dataclass
    class NewlineKeySeen(Message):
        """This terminal tells shift+enter from enter."""

    def __init__(self, history: History, completion: Completion, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder="Ask anything, or / for commands",
        )
        self._past = history
        self._completion = completion
        self._shift_enter_works = False
        self.takes_back = False
        self.painted_at = math.inf
        self._declined = ""
        self._offered = ""

    @property
    def draft(self) -> str:
        """What stands in the box."""
        return self.text

    def put(self, text: str) -> None:
        """Replace what stands in the box, with the cursor at the end."""
        self.text = typed(text)
        self.move_cursor(self.document.end)

    def offer(self, text: str) -> None:
        """Put `text` for the person to go on with; until they touch it, a slash begins a command instead."""
        self.put(text)
        self._offered = self.text

    def type_in(self, text: str) -> None:
        """Insert text as if it had been typed here."""
        self.insert(typed(text))

    def offer_commands(self) -> None:
        """Offer the commands that the text may become, unless they were declined."""
        text = self.text
        offered = complete(text) if text != self._declined else ()
        exact = find_command(text.removeprefix("/"))
        self._completion.show(() if offered == (exact,) else offered)

    def grow(self) -> None:
        """As high as the text, up to six rows, or a fifth of a screen that has few."""
        height = self.screen.size.height
        most = _MOST_ROWS if height > _FEW_ROWS else max(1, height // _SCREEN_SHARE)
        rows = max(1, min(most, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_resize(self) -> None:
        """Another width wraps otherwise."""
        self.grow()

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        if not self.read_only:
            start, end = self.selection
            self.replace(typed(event.text), start, end, maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        """Keys that mean something else here than in a plain text area."""
        key = event.key
        if key == "ctrl+j" and event.time < self.painted_at:
            # Enter pressed before the terminal was in raw mode reaches us as a line feed
            key = "enter"
        if self._handle(key):
            event.stop()
            event.prevent_default()

    def _give_way(self, key: str) -> None:
        """An offered text that nobody touched gives way to a command."""
        if key == "slash" and self._offered and self.text == self._offered:
            self.put("")
        self._offered = ""

    def _handle(self, key: str) -> bool:
        self._give_way(key)
        self.offer_commands()  # keys may come faster than the news of a change
        if self._completion.shown and self._complete(key):
            return True
        match key:
            case "enter":
                self._submit(self.text)
            case "shift+enter" | "ctrl+j" | "alt+enter":
                if key == "shift+enter" and not self._shift_enter_works:
                    self._shift_enter_works = True
                    self.post_message(self.NewlineKeySeen())
                self.insert("\n")
            case "up" if self._on_first_row:
                self._older()
            case "down" if self._on_last_row:
                self._newer()
            case _:
                return False
        return True

    def _complete(self, key: str) -> bool:
        chosen = self._completion.chosen
        match key:
            case "up" | "down":
                self._completion.move(-1 if key == "up" else 1)
            case "tab" if chosen is not None:
                self.put(f"/{chosen.name} ")
            case "enter" if chosen is not None:
                self._submit(f"/{chosen.name}")
            case "escape":
                self._declined = self.text
                self.offer_commands()
            case _:
                return False
        return True

    def _submit(self, text: str) -> None:
        self.post_message(self.Submitted(text))
        if self.text:
            self.put("")

    def _older(self) -> None:
        if not self.text and self.takes_back:
            self.post_message(self.TakeBack())
            return
        older = self._past.older(self.text)
        if older is not None:
            self.put(older)

    def _newer(self) -> None:
        newer = self._past.newer()
        if newer is not None:
            self.put(newer)

    @property
    def _on_first_row(self) -> bool:
        return bool(self._row == 0)

    @property
    def _on_last_row(self) -> bool:
        return bool(self._row >= self.wrapped_document.height - 1)

    @property
    def _row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y
