"""The prompt box: a text area in which Enter sends and up and down walk the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from rolling_chat.text import typed

if TYPE_CHECKING:
    from rolling_chat.tui.controllers.history import History
    from rolling_chat.tui.widgets.completion import Completion

_MOST_ROWS = 6


class PromptBox(TextArea):
    """Posts what the person sends; the draft is kept until somebody takes it."""

    DEFAULT_CSS = """
    PromptBox {
        height: 1; padding: 0; border: none; background: $background; color: $foreground;
        scrollbar-size-vertical: 1;
    }
    PromptBox:focus { border: none; }
    PromptBox .text-area--cursor-line { background: $background; }
    """

    @dataclass
    class Submitted(Message):
        """The person pressed Enter; the box still holds the text."""

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

    @property
    def draft(self) -> str:
        """What stands in the box."""
        return self.text

    def put(self, text: str) -> None:
        """Replace what stands in the box, with the cursor at the end."""
        self.text = typed(text)
        self.move_cursor(self.document.end)

    def type_in(self, text: str) -> None:
        """Insert text as if it had been typed here."""
        self.insert(typed(text))

    def grow(self) -> None:
        """As high as the text, up to six rows."""
        rows = max(1, min(_MOST_ROWS, self.wrapped_document.height))
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
        if self._handle(event.key):
            event.stop()
            event.prevent_default()

    def _handle(self, key: str) -> bool:
        if self._completion.shown and self._complete(key):
            return True
        match key:
            case "enter":
                self.post_message(self.Submitted(self.text))
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
                self.post_message(self.Submitted(f"/{chosen.name}"))
            case "escape":
                self._completion.show(())
            case _:
                return False
        return True

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
