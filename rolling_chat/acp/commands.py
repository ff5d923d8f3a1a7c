"""Slash commands for clients: their output becomes text, their dialogs become questions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from acp.helpers import text_block
from acp.schema import (
    AgentMessageChunk,
    AvailableCommand,
    AvailableCommandInput,
    StopReason,
    UnstructuredCommandInput,
)

from rolling_chat.acp.content import fenced, notice
from rolling_chat.acp.questions import Offer, Questions
from rolling_chat.acp.turns import Send, Turns
from rolling_chat.agent import Chat
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.commands import Choice, Command, ParsedCommand, Table, find_command, run_command
from rolling_chat.commands.base import Browsed, Inspection, SessionShelf
from rolling_chat.context.report import PromptReport
from rolling_chat.mentions import without_marks
from rolling_chat.text import one_line, visible

_log = logging.getLogger("rolling_chat.acp")

Result = TypeVar("Result")

OFFERED = (
    "rolling-context", "context", "cost", "compact", "summary", "lost", "pin", "unpin", "exclude", "include",
    "recall", "files", "diff", "processes", "mode", "permissions", "mcp", "trust", "init",
    "skill", "skills", "model", "effort", "undo", "redo", "retry", "branches", "rename", "export",
)  # fmt: skip
"""The commands that make sense in any client, in the order of the help."""

_MAX_CHOICES = 12  # a permission dialog is too small for more
_MAX_ROWS = 60
_ELSEWHERE = {
    "new": "begin a new session in your client.",
    "resume": "your client lists the sessions.",
    "sessions": "your client lists the sessions.",
    "fork": "fork the session in your client.",
}


def available_commands(custom: Sequence[Command] = ()) -> list[AvailableCommand]:
    """Return the commands for a client to offer; `custom` are those that users and projects add."""
    known = [command for name in OFFERED if (command := find_command(name)) is not None]
    return [
        AvailableCommand(
            name=command.name,
            description=command.summary,
            input=AvailableCommandInput(UnstructuredCommandInput(hint=command.usage))
            if command.usage
            else None,
        )
        for command in (*known, *custom)
    ]


class ClientCommands:
    """Runs the commands of one session (`rolling_chat.commands.CommandContext`)."""

    def __init__(self, chat: Chat, questions: Questions, turns: Turns, send: Send) -> None:
        self.chat = chat
        self._questions = questions
        self._turns = turns
        self._send = send
        self._shown: list[str] = []
        self._stopped: StopReason = "end_turn"

    async def run(self, parsed: ParsedCommand) -> StopReason:
        """Run a command and show its output; return why it stopped."""
        self._shown, self._stopped = [], "end_turn"
        if find_command(parsed.name) is not None and parsed.name not in OFFERED:
            self.say(_not_here(parsed.name), warning=True)
        else:
            await self.chat.session.preview.ready()
            await run_command(parsed, self)
        await self._show()
        await self._turns.show_usage()
        return self._stopped

    async def _show(self) -> None:
        """Send the output so far."""
        text, self._shown = "".join(self._shown), []
        if text:
            await self._send(
                AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))
            )

    @property
    def report(self) -> PromptReport:
        """The report of the next request."""
        return self.chat.session.preview.report()

    @property
    def theme_names(self) -> Sequence[str]:
        """Empty: the client has its own theme."""
        return ()

    @property
    def theme_name(self) -> str:
        """Empty: the client has its own theme."""
        return ""

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a line."""
        self._shown.append(notice(f"⚠ {text}" if warning else text))

    def show_tables(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Show lines and tables, only the first rows of a long one."""
        parts = [title, "", *lead]
        for table in tables:
            parts += ["", *_rows(table)]
        self._shown.append(f"\n\n{fenced(visible(chr(10).join(parts)))}\n\n")

    def show_inspector(self, read: Callable[[], Inspection]) -> None:
        """Show the next request as tables."""
        inspection = read()
        self.show_tables("The next request", inspection.lead, inspection.tables)

    def show_text(self, title: str, text: str) -> None:
        """Show a whole text."""
        self._shown.append(f"{notice(one_line(title))}{fenced(visible(text, tabs=True))}\n\n")

    async def confirm(
        self, title: str, question: str, text: str, answer: str, other: str = ""
    ) -> bool | None:
        """Let the user accept or reject a text, or choose the `other` answer, which returns None."""
        await self._show()
        offers = [
            Offer("yes", answer.capitalize(), "allow_once"),
            *([Offer("other", other.capitalize(), "allow_once")] if other else []),
            Offer("no", "No", "reject_once"),
        ]
        chosen = await self._questions.choose(title, f"{question}\n\n{text}", offers)
        return None if chosen == "other" else chosen == "yes"

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        """Show the text, which cannot be edited here."""
        self.show_text(f"{title}: {lead}", text)
        return None

    def show_help(self) -> None:
        """Show nothing: the client lists the commands."""

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        """Run `work` in a thread until the prompt is canceled, which sets its event."""
        _log.info("%s", doing)
        stop = threading.Event()
        try:
            return await asyncio.to_thread(work, stop)
        finally:
            stop.set()

    async def wait_for_task(self, work: Coroutine[Any, Any, Result], doing: str) -> Result | None:
        """Await `work`."""
        _log.info("%s", doing)
        return await work

    def insert_output(self, text: str) -> None:
        """Show a command's output."""
        self.show_text("output", text)

    async def paste_picture(self) -> None:
        """Do nothing: pictures are part of the prompt."""

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        """Ask for one of a few choices; if there are many, list them, to be given with the command."""
        await self._show()
        if len(choices) > _MAX_CHOICES:
            lines = [f"{one.label}  {one.note}".rstrip() for one in choices[:_MAX_ROWS]]
            more = [f"… and {len(choices) - _MAX_ROWS:,} more"] if len(choices) > _MAX_ROWS else []
            self.show_text(f"{title}: give one with the command", "\n".join([*lines, *more]))
            return None
        names = [one.label + (f": {one.note}" if one.note else "") for one in choices]
        offers = [Offer(str(at), name, "allow_once") for at, name in enumerate(names)]
        text = f"now: {current}" if current else "One of these:"
        answer = await self._questions.choose(title, text, [*offers, Offer("none", "None", "reject_once")])
        return choices[int(answer)].value if answer.isdecimal() else None

    async def browse(self, shelf: SessionShelf, *, current: str = "") -> Browsed:
        """List the sessions, for the client to open one."""
        lines = [f"{one.label}  {one.note}".rstrip() for one in (await shelf.choices())[:_MAX_ROWS]]
        self.show_text(f"Sessions; {current} is open", "\n".join(lines))
        return Browsed()

    def reload(self) -> None:
        """Do nothing: nothing can be removed from the client's transcript."""

    def refresh_title(self) -> None:
        """Do nothing: the title is sent after the command."""

    def offer_draft(self, text: str) -> bool | None:
        """Show a text for the user to copy: the prompt box is the client's."""
        self.show_text("Your message was", without_marks(text))
        return None

    def show_message(self, message_id: str, words: str = "") -> None:
        """Do nothing: the client scrolls."""

    async def stop_turn(self) -> None:
        """Do nothing: no turn runs during a command."""

    async def send(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        """Send a message, and wait for the end of the turn."""
        await self._show()
        self._stopped = await self._turns.run(lambda: self.chat.send(text, inserted))

    async def edit_file(self, path: Path) -> bool:
        """Name a file for the user to open in the client."""
        self.say(f"Open {path} in your editor.")
        return False

    async def carry_on(self) -> None:
        """Let the model answer the last message of the conversation."""
        await self._show()
        self._stopped = await self._turns.run(self.chat.carry_on)

    def refresh_report(self) -> None:
        """Do nothing: the figures are sent after the command."""

    def set_theme(self, name: str) -> None:
        """Do nothing: the client has its own theme."""

    def copy(self, text: str) -> bool:
        """Show the text: the clipboard is the client's."""
        self.show_text("To copy", text)
        return False

    def open_address(self, address: str) -> None:
        """Show an address; the client opens it."""
        self.say(f"Open {address}")

    def quit(self) -> None:
        """Do nothing: the client quits."""


def _not_here(name: str) -> str:
    return f"/{name} works in the terminal only" + (f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ".")


def _rows(table: Table) -> list[str]:
    """Return a table as aligned lines."""
    rows = [tuple(column.title for column in table.columns), *table.rows[:_MAX_ROWS]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    lines = [
        "  ".join(
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in rows
    ]
    left = len(table.rows) - _MAX_ROWS
    return [*lines, f"… and {left:,} more"] if left > 0 else lines
