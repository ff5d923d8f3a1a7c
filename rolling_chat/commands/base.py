"""Slash commands, and the operations on chat and screen that they may use."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from rolling_chat.agent import Chat
    from rolling_chat.agent.turn.attaching import Insertion
    from rolling_chat.context.report import PromptReport


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a picker: `value` is returned, `label` and `note` are shown."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; figures are right-aligned. A `spare` last column is shown if there is room."""

    title: str
    right: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain strings; the rows of a long one are made on demand."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The next request as lines and tables; the last table has a row per message, at these `indexes`."""

    lead: tuple[str, ...]
    tables: tuple[Table, ...]
    indexes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Browsed:
    """What the user did in the list of sessions: the one to open, if any, and those to delete."""

    chosen: str = ""
    deleted: tuple[str, ...] = ()


class SessionShelf(Protocol):
    """The saved sessions for the list of sessions; methods that change one return an error line or ""."""

    async def choices(self) -> Sequence[Choice]:
        """Return an entry for each session."""
        ...

    def preview(self, session_id: str) -> Sequence[str]:
        """Return lines that show one session; called from a thread."""
        ...

    async def rename(self, session_id: str, title: str) -> str:
        """Give a session another title."""
        ...

    async def fork(self, session_id: str) -> str:
        """Copy a session."""
        ...


class CommandContext(Protocol):
    """The operations on chat and screen that a command may use."""

    @property
    def chat(self) -> Chat:
        """The open session."""
        ...

    @property
    def report(self) -> PromptReport:
        """The report of the next request as the gauge shows it, including draft and streamed reply."""
        ...

    @property
    def theme_names(self) -> Sequence[str]:
        """The names of the available themes."""
        ...

    @property
    def theme_name(self) -> str:
        """The name of the active theme."""
        ...

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show the user a one-line notice in the transcript."""
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
        """Show a text of any length on a screen of its own."""
        ...

    async def confirm(
        self, title: str, question: str, text: str, answer: str, other: str = ""
    ) -> bool | None:
        """Show a text to accept (labeled `answer`) or reject; return whether it was accepted.

        Return None if the user chose `other`.
        """
        ...

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        """Let the user edit a text; return it, or None if they cancel."""
        ...

    def show_help(self) -> None:
        """Show the keys and the commands."""
        ...

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        """Run `work` in a thread, showing `doing`; return None if the user cancels, which sets its event."""
        ...

    async def wait_for_task(self, work: Coroutine[Any, Any, Result], doing: str) -> Result | None:
        """Await `work`, showing `doing`; return None if the user cancels, which cancels it."""
        ...

    def insert_output(self, text: str) -> None:
        """Insert the output of a command into the prompt box, as one word with its tokens."""
        ...

    async def paste_picture(self) -> None:
        """Insert a mention of the clipboard's picture into the prompt box, or report why there is none."""
        ...

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        """Let the user choose from a list; return None if they choose nothing."""
        ...

    async def browse(self, shelf: SessionShelf, *, current: str = "") -> Browsed:
        """Let the user look through the saved sessions, change them, and choose one."""
        ...

    def reload(self) -> None:
        """Show the conversation again after the session was replaced."""
        ...

    def refresh_title(self) -> None:
        """Redraw the session's title."""
        ...

    def offer_draft(self, text: str) -> bool | None:
        """Insert `text` into the prompt box if that is blank; return whether it was.

        Return None if there is no prompt box, so that the text is shown instead.
        """
        ...

    def show_message(self, message_id: str, words: str = "") -> None:
        """Scroll the transcript to a message, and highlight the given words in it."""
        ...

    async def stop_turn(self) -> None:
        """Stop the running turn, if any, and wait for its end."""
        ...

    async def send(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        """Send a message as if the user had typed it, followed by what is `inserted`; await the turn."""
        ...

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor; return False, after telling the user, if that fails."""
        ...

    async def carry_on(self) -> None:
        """Have the model answer the last message of the conversation."""
        ...

    def refresh_report(self) -> None:
        """Redraw the gauge after a change of the next request."""
        ...

    def set_theme(self, name: str) -> None:
        """Use a theme from now on, and save it in the settings."""
        ...

    def copy(self, text: str) -> bool:
        """Copy `text` to the terminal's clipboard; return False, after telling the user, if that fails."""
        ...

    def open_address(self, address: str) -> None:
        """Show the user an address, and ask whether to open it in a browser."""
        ...

    def quit(self) -> None:
        """Quit the program."""
        ...


Run: TypeAlias = Callable[[CommandContext, str], Awaitable[None] | None]
Choices: TypeAlias = Callable[[CommandContext, str], Sequence[Choice]]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The choices for the words after a command's name.

    `choices` gets the words typed so far ("set") and returns what may come next, or nothing if anything may.
    It is called once per command line, not for every key. `closed`: nothing else is accepted, so that the
    first letters of a choice are enough.
    """

    choices: Choices
    closed: bool = False


def first_word(choices: Callable[[CommandContext], Sequence[Choice]], *, closed: bool = False) -> Arguments:
    """Return choices for a command that takes one word."""
    return Arguments(lambda context, before: () if before else choices(context), closed=closed)


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    `usage` describes its arguments ("[on|off|status]"), and `summary` is one line for help and completion.
    `while_busy`: it may run while the model works. `run` gets the context and the stripped argument.
    `arguments` are what completion offers after the name.
    """

    name: str
    usage: str
    summary: str
    run: Run
    while_busy: bool = False
    arguments: Arguments | None = None

    @property
    def signature(self) -> str:
        """The command as typed, with its arguments: `/model [name]`."""
        return f"/{self.name} {self.usage}".rstrip()
