"""What a slash command is, and what the screen lends to one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.context.report import PromptReport


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a picker: `value` is what is chosen, `label` and `note` are what is shown."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; figures stand at the right. A `spare` last one is for where there is room."""

    title: str
    right: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain strings; of a long one the rows are made when they are asked for."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The next request: lines, tables, the last of which has a row a message, and the place of each row."""

    lead: tuple[str, ...]
    tables: tuple[Table, ...]
    places: Sequence[int]


class CommandContext(Protocol):
    """What the screen lends to a command; tests lend something plainer."""

    @property
    def chat(self) -> Chat:
        """The open session."""
        ...

    @property
    def report(self) -> PromptReport:
        """The next request as the gauge shows it: the draft is in it, and what streams in."""
        ...

    @property
    def theme_names(self) -> Sequence[str]:
        """The themes that there are."""
        ...

    @property
    def theme_name(self) -> str:
        """The active theme."""
        ...

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show one line in the transcript."""
        ...

    def show_tables(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Show lines and tables on a screen of their own."""
        ...

    def show_inspector(self, read: Callable[[], Inspection]) -> None:
        """Show the next request on a screen of its own, where messages can be pinned and excluded.

        `read` is called again after every change.
        """
        ...

    def show_text(self, title: str, text: str) -> None:
        """Show a text of any length, whole, on a screen of its own."""
        ...

    async def confirm(self, title: str, question: str, text: str, answer: str) -> bool:
        """Show a text to take or leave; `answer` says what taking does. Whether it was taken."""
        ...

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        """Let the user edit a text; None when they leave it."""
        ...

    def show_help(self) -> None:
        """Show keys and commands."""
        ...

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        """Run `work` in a thread, `doing` on the screen; None once the user cancels, which sets its event."""
        ...

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        """Let the user choose; None when they choose nothing."""
        ...

    def reload(self) -> None:
        """The session was changed for another: draw its conversation."""
        ...

    def refresh_title(self) -> None:
        """The session has another title: draw it."""
        ...

    def offer_draft(self, text: str) -> bool:
        """Put `text` into the prompt box if that is empty; whether it was."""
        ...

    def show_message(self, message_id: str, words: str = "") -> None:
        """Scroll the transcript to a message of the conversation, with these words marked in it."""
        ...

    async def stop_turn(self) -> None:
        """Stop the turn that runs, if one does, and wait for its end."""
        ...

    async def carry_on(self) -> None:
        """Let the model answer what the conversation ends with."""
        ...

    def refresh_report(self) -> None:
        """The next request has changed: draw the gauge again."""
        ...

    def set_theme(self, name: str) -> None:
        """Use a theme from now on, and keep it in the settings."""
        ...

    def copy(self, text: str) -> bool:
        """Put `text` on the terminal's clipboard; False where it did not go there, which has been said."""
        ...

    def quit(self) -> None:
        """Leave the program."""
        ...


Run: TypeAlias = Callable[[CommandContext, str], Awaitable[None] | None]
Choices: TypeAlias = Callable[[CommandContext, str], Sequence[Choice]]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What may follow a command's name, a word at a time.

    `choices` gets the words that stand already ("set") and gives what may come next, nothing where
    anything may; it is asked once for a command line, not at every key. `closed` says that nothing
    else is taken, so that the first letters of a choice are as good as all of it.
    """

    choices: Choices
    closed: bool = False


def first_word(choices: Callable[[CommandContext], Sequence[Choice]], *, closed: bool = False) -> Arguments:
    """Choices for a command that takes one word."""
    return Arguments(lambda context, before: () if before else choices(context), closed=closed)


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    `usage` is what follows the name ("[on|off|status]"), `summary` one line for help and
    completion. `while_busy` says that it may run while the model works. `run` gets the context
    and the argument, already stripped. `arguments` are what completion offers after the name.
    """

    name: str
    usage: str
    summary: str
    run: Run
    while_busy: bool = False
    arguments: Arguments | None = None

    @property
    def signature(self) -> str:
        """The command as it is typed: `/model [name]`."""
        return f"/{self.name} {self.usage}".rstrip()
