"""Run slash commands, and give them access to the screen."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from rolling_chat.agent import ChatError
from rolling_chat.commands import ParsedCommand, custom_commands, run_command
from rolling_chat.commands.base import Browsed, SessionShelf
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.write import save_setting
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen
from rolling_chat.tui.dialogs.editor_screen import EditorScreen
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from rolling_chat.tui.dialogs.inspector import InspectorScreen
from rolling_chat.tui.dialogs.pickers import Picker
from rolling_chat.tui.dialogs.session_browser import SessionBrowser
from rolling_chat.tui.dialogs.tables_screen import TablesScreen
from rolling_chat.tui.dialogs.text_screen import TextScreen
from rolling_chat.tui.state.items import item_showing
from rolling_chat.tui.terminal.clipboard_pictures import ClipboardError, read_picture
from rolling_chat.tui.terminal.external import ExternalError, edit_file

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App
    from textual.screen import Screen

    from rolling_chat.agent import Chat
    from rolling_chat.agent.turn.attaching import Insertion
    from rolling_chat.commands import Choice, Table
    from rolling_chat.commands.base import Inspection
    from rolling_chat.context.report import PromptReport
    from rolling_chat.settings.paths import Paths
    from rolling_chat.tui.controllers.following import Following
    from rolling_chat.tui.controllers.meter import Meter
    from rolling_chat.tui.controllers.turn_controller import TurnController
    from rolling_chat.tui.keymap import Keymap
    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.prompt_box import PromptBox
    from rolling_chat.tui.widgets.transcript import Transcript

_log = logging.getLogger("rolling_chat.tui")

Result = TypeVar("Result")

_AT_ONCE = {"help", "quit"}  # commands that need nothing of the conversation


class Shell(Protocol):
    """The part of the app that commands and screens use."""

    keymap: Keymap
    theme: str
    theme_names: Sequence[str]
    touched_at: float

    def push_screen(self, screen: Screen[Any], /) -> object:
        """Open a screen over the current one."""
        ...

    def push_screen_wait(self, screen: Screen[Result], /) -> Awaitable[Result]:
        """Open a screen over the current one, and return its result once it closes."""
        ...

    def call_later(self, callback: Callable[[], Any], /) -> bool:
        """Call a function once the messages being processed are done."""
        ...

    def copied(self, text: str) -> bool:
        """Copy `text`; return whether it reached the clipboard."""
        ...

    def call_attention(self, line: str) -> bool:
        """Notify a user who is looking elsewhere of `line`; return False if they are at the terminal."""
        ...

    def fault(self, what: str, error: Exception) -> str:
        """Log an unexpected exception; return one line for the user that names it and the log."""
        ...

    async def action_quit(self) -> None:
        """Stop the running work, and quit."""
        ...


class CommandStage(Protocol):
    """The part of the screen that commands use."""

    chat: Chat
    state: ScreenState

    @property
    def transcript(self) -> Transcript:
        """The widget that shows the conversation."""
        ...

    @property
    def prompt(self) -> PromptBox:
        """The prompt box."""
        ...

    def load(self) -> None:
        """Show the chat's conversation, scrolled to its end."""
        ...

    async def settle(self) -> None:
        """Stop the running work and wait until it has ended."""
        ...

    def open_address(self, address: str) -> None:
        """Ask whether to open an address in a browser, and open it."""
        ...


class CommandController:
    """The operations on chat and screen that commands may use (`rolling_chat.commands.CommandContext`)."""

    def __init__(
        self,
        app: Shell,
        screen: CommandStage,
        following: Following,
        meter: Meter,
        turns: TurnController,
        *,
        paths: Paths | None,
    ) -> None:
        self._app = app
        self._screen = screen
        self._following = following
        self._meter = meter
        self._turns = turns
        self._paths = paths
        self._canceled: asyncio.Event | None = None
        self._is_kept = False  # the awaited work must not be canceled by other work
        self.chat = screen.chat

    async def run(self, parsed: ParsedCommand) -> None:
        """Run a command; report an unexpected exception in one line."""
        try:
            if parsed.name not in _AT_ONCE:
                with suppress(ChatError):  # a command that needs the unreadable part reports it itself
                    await self.chat.session.preview.ready()
            await run_command(parsed, self, busy=self._screen.state.busy)
        except Exception as error:  # a bug in a command must not end the program
            self.say(self._app.fault(f"/{parsed.name} broke", error), warning=True)

    @property
    def report(self) -> PromptReport:
        """The report of the next request, as the gauge shows it."""
        return self._meter.reading() or self.chat.session.preview.report()

    @property
    def theme_names(self) -> Sequence[str]:
        """The names of the themes found in the theme folders."""
        return self._app.theme_names

    @property
    def theme_name(self) -> str:
        """The name of the active theme."""
        return self._app.theme

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show the user a one-line notice in the transcript."""
        self._screen.state.notice(text, warning=warning)

    def show_tables(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Show lines and tables on a screen of their own."""
        self._app.push_screen(TablesScreen(title, lead, tables))

    def show_inspector(self, read: Callable[[], Inspection]) -> None:
        """Open the inspector: the next request, whose messages can be pinned and excluded."""
        self._app.push_screen(InspectorScreen(self.chat, read, lambda: self.report, self._pins_changed))

    def _pins_changed(self, line: str) -> None:
        self.refresh_report()
        self.say(line)

    def show_text(self, title: str, text: str) -> None:
        """Show a whole text on a screen of its own."""
        self._app.push_screen(TextScreen(title, text))

    async def confirm(
        self, title: str, question: str, text: str, answer: str, other: str = ""
    ) -> bool | None:
        """Ask the user to accept or reject a text; what they were typing goes to the prompt box."""
        typed = self._screen.prompt.take_in
        return await self._app.push_screen_wait(
            ConfirmScreen(title, question, text, answer, other=other, typed=typed)
        )

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        """Let the user edit a text; return it, or None if they cancel."""
        return await self._app.push_screen_wait(EditorScreen(title, lead, text))

    def show_help(self) -> None:
        """Show the keys and the commands."""
        self._app.push_screen(HelpScreen(self._app.keymap, custom_commands(self.chat)))

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        """Run `work` in a thread; return None if `cancel` is called first, which sets its event."""
        stop = threading.Event()
        return await self._await(asyncio.ensure_future(asyncio.to_thread(work, stop)), doing, stop.set)

    async def wait_for_task(self, work: Coroutine[Any, Any, Result], doing: str) -> Result | None:
        """Await `work`; return None if `cancel` is called first, which cancels it."""
        task = asyncio.ensure_future(work)
        return await self._await(task, doing, task.cancel, is_kept=True)

    async def _await(
        self,
        running: asyncio.Future[Result],
        doing: str,
        end: Callable[[], object],
        *,
        is_kept: bool = False,
    ) -> Result | None:
        """Await work until the user cancels it, and call `end` in any case.

        Other work cancels it too, unless it `is_kept`; then the other work raises ChatError instead.
        """
        if self._is_kept:
            end()
            running.add_done_callback(_heard)
            raise ChatError("A command is still running: wait for it, or end it with Esc.")
        self.cancel()
        canceled, self._is_kept = asyncio.Event(), is_kept
        self._canceled, self._screen.state.doing = canceled, doing
        waiting = asyncio.ensure_future(canceled.wait())
        self._screen.state.changed()
        try:
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
            return None if canceled.is_set() else running.result()
        finally:
            end()
            waiting.cancel()
            running.add_done_callback(_heard)  # retrieve an exception that nobody awaits
            if self._canceled is canceled:
                self._is_kept = False
                self._canceled, self._screen.state.doing = None, ""
                self._screen.state.changed()

    def cancel(self) -> bool:
        """Cancel the command that the user is waiting for; return whether there was one."""
        if self._canceled is None:
            return False
        self._canceled.set()
        return True

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        """Let the user choose from a list; return the chosen value, or None if they cancel."""
        return await self._app.push_screen_wait(Picker(title, choices, current=current))

    async def browse(self, shelf: SessionShelf, *, current: str = "") -> Browsed:
        """Let the user look through the saved sessions; return what they chose and deleted."""
        return await self._app.push_screen_wait(SessionBrowser(shelf, current=current))

    async def paste_picture(self) -> None:
        """Put a mention of the clipboard's picture into the prompt box, or say why there is none."""
        try:
            data = await self.wait_for(lambda _: read_picture(os.environ), "reading the clipboard")
            if data:
                path = await self.chat.session.mentions.keep_picture(data)
                self._screen.prompt.mention(path)
        except (ClipboardError, ChatError) as error:
            self.say(str(error), warning=True)

    def reload(self) -> None:
        """Show the conversation again, after the session was replaced by another."""
        self._screen.load()

    def refresh_title(self) -> None:
        """Redraw the title row."""
        self._screen.state.changed()

    def insert_output(self, text: str) -> None:
        """Insert a command's output into the prompt box, as one token with its price."""
        self._screen.prompt.take_output(text)

    def offer_draft(self, text: str) -> bool:
        """Put `text` in the prompt box if it is blank; return whether it was."""
        if self._screen.prompt.text.strip():
            return False
        self._screen.prompt.offer(text)
        return True

    def show_message(self, message_id: str, words: str = "") -> None:
        """Scroll to a message and highlight `words` in it; unfold all results if it is folded."""
        item_id, is_folded = item_showing(self.chat.session.messages, message_id)
        transcript = self._screen.transcript
        if is_folded and not transcript.details:
            transcript.set_details(True)
        transcript.show_found(item_id, words)
        self._screen.state.changed()

    async def stop_turn(self) -> None:
        """Stop the running turn and wait for its end."""
        await self._screen.settle()

    async def send(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        """Send a message as if the user had typed it, and wait for the end of the turn."""
        await self._turns.say(text, inserted)()

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor; on failure, show why and return False."""
        try:
            await edit_file(cast("App[Any]", self._app), path)
        except ExternalError as error:
            self.say(str(error), warning=True)
            return False
        return True

    async def carry_on(self) -> None:
        """Let the model answer the last message of the conversation."""
        await self._turns.carry_on()()

    def refresh_report(self) -> None:
        """Redraw the gauge and the marks, after a change of the next request."""
        self._following.mark()
        self._screen.state.changed()

    def set_theme(self, name: str) -> None:
        """Use a theme at once, and save it in the settings if they can be written."""
        self._app.theme = name
        if self._paths is None:
            return
        try:
            save_setting(self._paths, "theme", name)
        except (SettingsError, OSError) as error:
            _log.warning("the theme could not be kept", exc_info=True)
            self.say(f"The theme is not kept for the next start: {error}", warning=True)

    def copy(self, text: str) -> bool:
        """Copy `text` to the terminal's clipboard; return whether it got there."""
        return self._app.copied(text)

    def open_address(self, address: str) -> None:
        """Show the user an address, and ask whether to open it in a browser."""
        self._screen.open_address(address)

    def quit(self) -> None:
        """Quit the program."""
        self._app.call_later(self._app.action_quit)


def _heard(running: asyncio.Future[Result]) -> None:
    if not running.cancelled():
        running.exception()
