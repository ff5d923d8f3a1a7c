"""The operations of slash commands in a plain chat (`rolling_chat.commands.CommandContext`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from rolling_chat.agent import Chat
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.commands import Choice, Table, all_commands, custom_commands
from rolling_chat.commands.base import Browsed, Inspection, SessionShelf
from rolling_chat.context.report import PromptReport
from rolling_chat.plain.console import Console
from rolling_chat.plain.questions import choose
from rolling_chat.plain.turns import Turns
from rolling_chat.text import exact, one_line

Result = TypeVar("Result")

_OTHER = 2  # the index of the third answer of `confirm`
_SHOWN = 20  # choices listed at once
_RECENT = 4  # messages written when a session is opened
_MAX_MESSAGE = 2_000  # characters of each of these messages


class PlainCommands:
    """The operations on chat and terminal that commands may use; `draft` is put before the next message."""

    def __init__(self, chat: Chat, console: Console, turns: Turns) -> None:
        self.chat = chat
        self._console = console
        self._turns = turns
        self.draft = ""
        self.has_quit = False

    @property
    def report(self) -> PromptReport:
        """The report of the next request."""
        return self.chat.session.preview.report()

    @property
    def theme_names(self) -> Sequence[str]:
        """Empty: plain lines have no colors."""
        return ()

    @property
    def theme_name(self) -> str:
        """Empty: there are no themes."""
        return ""

    def set_theme(self, name: str) -> None:
        """Report that there are no colors to change."""
        self.say(f"Plain lines have no colors; the theme {name} was not set.", warning=True)

    def say(self, text: str, *, warning: bool = False) -> None:
        """Write a line."""
        self._console.write(f"Warning: {text}" if warning else text)

    def show_tables(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Write lines, and each row of the tables as a line with the names of its columns."""
        self.say(f"{title}:")
        for line in lead:
            self.say(line)
        for table in tables:
            for row in table.rows:
                cells = zip((column.title for column in table.columns), row, strict=False)
                self.say("; ".join(f"{name} {cell}".strip() for name, cell in cells if cell.strip()))

    def show_inspector(self, read: Callable[[], Inspection]) -> None:
        """Write the next request, message by message."""
        seen = read()
        self.show_tables("The next request", seen.lead, seen.tables)
        self.say("/pin and /exclude take the id of a message.")

    def show_text(self, title: str, text: str) -> None:
        """Write a whole text."""
        self.say(f"{title}:")
        self._console.write(text)

    def show_message(self, message_id: str, words: str = "") -> None:  # noqa: ARG002  # nothing to highlight
        """Write a message."""
        for index, found in enumerate(self.chat.session.messages, 1):
            if found.id == message_id:
                self.show_text(f"{found.role}, r{index}", found.text)

    def show_help(self) -> None:
        """Write the commands and the keys."""
        self.say("Write a message, or a command. Ctrl+C stops an answer, Ctrl+D quits.")
        for command in (*all_commands(), *custom_commands(self.chat)):
            self.say(f"{command.signature}: {command.summary}")

    async def confirm(
        self, title: str, question: str, text: str, answer: str, other: str = ""
    ) -> bool | None:
        """Let the user accept or reject a text, or choose the `other` answer, which returns None."""
        self.show_text(f"{title}. {question}", text)
        chosen = await choose(self._console, [answer, "cancel", *([other] if other else [])])
        return None if chosen == _OTHER else chosen == 0

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        """Let the user edit a text in their editor; return it, or None on failure."""
        from rolling_chat.tui.terminal.external import ExternalError, edit_text  # noqa: PLC0415  # with Textual

        self.say(f"{title}. {lead}")
        try:
            return await edit_text(_LineTerminal(), text)
        except ExternalError as error:
            self.say(str(error), warning=True)
            return None

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor and wait for its end."""
        from rolling_chat.tui.terminal.external import ExternalError, edit_file  # noqa: PLC0415  # with Textual

        try:
            await edit_file(_LineTerminal(), path)
        except ExternalError as error:
            self.say(str(error), warning=True)
            return False
        return True

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        """Run `work` in a thread; Ctrl+C cancels it."""
        stop = threading.Event()
        try:
            return await self._until_interrupted(asyncio.ensure_future(asyncio.to_thread(work, stop)), doing)
        finally:
            stop.set()

    async def wait_for_task(self, work: Coroutine[Any, Any, Result], doing: str) -> Result | None:
        """Await `work`; Ctrl+C cancels it."""
        task = asyncio.ensure_future(work)
        try:
            return await self._until_interrupted(task, doing)
        finally:
            task.cancel()

    async def _until_interrupted(self, running: asyncio.Future[Result], doing: str) -> Result | None:
        self.say(f"{doing[:1].upper()}{doing[1:]}. Ctrl+C cancels it.")
        with self._console.interruptible() as interrupted:
            waiting = asyncio.ensure_future(interrupted.wait())
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            return running.result() if running.done() else None

    def insert_output(self, text: str) -> None:
        """Put a command's output before the next message."""
        self.draft += f"{text}\n"
        self.say("The output goes with your next message.")

    def offer_draft(self, text: str) -> bool:
        """Write a text that the user may want to send again, and has to retype."""
        self.say(f"Your message was: {text}")
        return True

    async def paste_picture(self) -> None:
        """Explain how to attach a picture in a plain chat."""
        self.say("Attach a picture by its path, such as @picture.png.", warning=True)

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        """Let the user choose from a list by number; words filter a long one."""
        left = list(choices)
        if not left:
            self.say(f"{title}: there is nothing to choose from.")
            return None
        while True:
            self.say(f"{title}:")
            labels = [_label(choice, is_current=choice.value == current) for choice in left[:_SHOWN]]
            if len(left) <= _SHOWN:
                chosen = await choose(self._console, labels)
                return left[chosen].value if chosen is not None else None
            words = await self._console.read(f"{len(left):,} choices. Words that narrow them, or nothing: ")
            if not words or not words.strip():
                return None
            wanted = words.strip().lower()
            left = [one for one in left if wanted in f"{one.label} {one.note}".lower()] or left

    async def browse(self, shelf: SessionShelf, *, current: str = "") -> Browsed:
        """Let the user choose a session."""
        return Browsed(await self.pick("Sessions", await shelf.choices(), current=current) or "")

    def reload(self) -> None:
        """Write the name of the open session and its newest messages."""
        session = self.chat.session
        self.say(f"Session: {session.info.title or 'new session'}. Model: {session.model}.")
        for message in session.conversation.recent[-_RECENT:]:
            if message.role in {"user", "assistant"} and message.text:
                self.say("You said:" if message.role == "user" else "Model said:")
                self._console.write(message.text[:_MAX_MESSAGE])

    def refresh_title(self) -> None:
        """Do nothing: there is no title row."""

    def refresh_report(self) -> None:
        """Write the figures of the gauge."""
        self._turns.write_context()

    def copy(self, text: str) -> bool:
        """Write the text, for the terminal or the screen reader to copy."""
        self._console.write(text)
        return True

    async def stop_turn(self) -> None:
        """Do nothing: no turn runs during a command."""

    async def send(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        """Send a message as if the user had written it, with the `inserted` texts below it."""
        await self._turns.say(text, inserted)

    async def carry_on(self) -> None:
        """Let the model answer the last message of the conversation."""
        await self._turns.carry_on()

    def open_address(self, address: str) -> None:
        """Write an address for the user to open in a browser."""
        self.say(f"Open this address in a browser: {exact(address)}")

    def quit(self) -> None:
        """Quit after this command."""
        self.has_quit = True


class _LineTerminal:
    """A terminal that needs no suspending, for a chat that only writes lines."""

    batch_update = suspend = staticmethod(nullcontext)


def _label(choice: Choice, *, is_current: bool) -> str:
    note = f", {one_line(choice.note)}" if choice.note else ""
    return f"{one_line(choice.label)}{note}{', current' if is_current else ''}"
