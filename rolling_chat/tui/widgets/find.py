"""The row above the prompt box in which is typed what to find in the transcript."""

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
    """Hidden until it is opened; posts what is typed, and where to go."""

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
        """Something else is to be found."""

        words: str

    @dataclass
    class Stepped(Message):
        """To the next hit, or to the previous one."""

        step: int

    class Closed(Message):
        """The person has found enough."""

    @property
    def shown(self) -> bool:
        """Is it open?"""
        return self.has_class("-open")

    @property
    def has_keys(self) -> bool:
        """Is it open, and is what is typed for it?"""
        return self.shown and self.screen.focused is self.query_one(Input)

    def compose(self) -> ComposeResult:
        """What it is, what is looked for, how that went."""
        yield Static("find: ", markup=False)
        yield Input(compact=True, select_on_focus=False, id="find-words")
        yield Static("", id="find-state", markup=False)

    def open(self) -> None:
        """Take the keys; what was looked for last is there, to be typed over."""
        self.add_class("-open")
        self.take_keys()
        self.query_one(Input).action_select_all()

    def take_keys(self) -> None:
        """What is typed next is for it, at once."""
        self.screen.set_focus(self.query_one(Input))

    def close(self) -> None:
        """Hide."""
        self.remove_class("-open")

    def say(self, state: str) -> None:
        """How the search stands."""
        self.query_one("#find-state", Static).update(state)

    @property
    def words(self) -> str:
        """What is to be found."""
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
        """To the next hit, or to the previous one."""
        self.post_message(self.Stepped(step))

    def action_close(self) -> None:
        """Leave it."""
        self.post_message(self.Closed())
