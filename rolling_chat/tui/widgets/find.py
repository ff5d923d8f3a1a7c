"""The find bar above the prompt box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from rolling_chat.text import typed

if TYPE_CHECKING:
    from textual.app import ComposeResult


class FindBar(Horizontal):
    """The row where the user types words to find in the transcript; hidden until it is opened."""

    DEFAULT_CSS = """
    FindBar { display: none; height: 1; padding: 0 1; background: $panel; color: $foreground; }
    FindBar.-open { display: block; }
    FindBar Static { width: auto; height: 1; }
    FindBar Input { width: 1fr; border: none; height: 1; padding: 0; background: $panel; }
    FindBar Input:focus { border: none; }
    FindBar #find-state { margin-left: 1; max-width: 70%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,ctrl+n", "step(1)", show=False),
        Binding("up,ctrl+p,shift+enter", "step(-1)", show=False),
        Binding("escape", "close", show=False),
        Binding("tab", "screen.answer", show=False),
    ]

    @dataclass
    class Changed(Message):
        """Posted when the user changes the words to find."""

        words: str

    @dataclass
    class Stepped(Message):
        """Posted when the user asks for the next hit (`step` 1) or the previous one (-1)."""

        step: int

    class Closed(Message):
        """Posted when the user closes the find bar."""

    @property
    def shown(self) -> bool:
        """Whether the find bar is open."""
        return self.has_class("-open")

    @property
    def has_keys(self) -> bool:
        """Whether the find bar is open and has the keyboard focus."""
        return self.shown and self.screen.focused is self.query_one(Input)

    def compose(self) -> ComposeResult:
        """Create the label, the input, and the state of the search."""
        yield Static("find: ", markup=False)
        yield Input(compact=True, select_on_focus=False, id="find-words")
        yield Static("", id="find-state", markup=False)

    def open(self) -> None:
        """Show the find bar, focus its input, and select the words of the last search."""
        self.add_class("-open")
        self.take_keys()
        self.query_one(Input).action_select_all()

    def take_keys(self) -> None:
        """Focus the input."""
        self.screen.set_focus(self.query_one(Input))

    def close(self) -> None:
        """Hide the find bar."""
        self.remove_class("-open")

    def say(self, state: str) -> None:
        """Show the state of the search next to the input."""
        shown = self.query_one("#find-state", Static)
        if shown.content != state:  # an update lays out the whole screen again
            shown.update(state)

    @property
    def words(self) -> str:
        """The words to find."""
        return typed(self.query_one(Input).value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.shown:
            self.post_message(self.Changed(self.words))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_step(1)

    def action_step(self, step: int) -> None:
        """Ask for the next hit (`step` 1) or the previous one (-1)."""
        self.post_message(self.Stepped(step))

    def action_close(self) -> None:
        """Ask to close the find bar."""
        self.post_message(self.Closed())
