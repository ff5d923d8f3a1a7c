"""The Textual app: themes, the one screen, quitting, and unexpected exceptions."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.filter import LineFilter, NoColor

from rolling_chat.tui.focus import keep_focus
from rolling_chat.tui.keymap import Keymap
from rolling_chat.tui.terminal.attention import Attention
from rolling_chat.tui.terminal.clipboard import Clipboard
from rolling_chat.tui.terminal.hangup import die_of_hangup, terminal_is_gone
from rolling_chat.tui.terminal.terminal_modes import TerminalModes
from rolling_chat.tui.terminal.watchdog import Watchdog
from rolling_chat.tui.theming import textual_theme
from rolling_chat.tui.widgets.keys import bindings_of

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.settings.paths import Paths
    from rolling_chat.settings.themes import ThemeSpec
    from rolling_chat.tui.screens.chat_screen import ChatScreen

_log = logging.getLogger("rolling_chat.tui")

_TERMINAL_CHECK_SECONDS = 2.0  # seconds


class RollingChatApp(App[None]):
    """The Textual app, which shows one chat; a subclass may pass `chat=None` and open it later.

    Without `paths`, neither the prompt history nor a changed theme is saved. `clock` is monotonic, in
    seconds.
    """

    TITLE = "rolling-chat"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("app")]

    def __init__(
        self,
        chat: Chat | None,
        *,
        theme: str,
        themes: Mapping[str, ThemeSpec],
        paths: Paths | None = None,
        keymap: Keymap | None = None,
        first_message: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._chat = chat
        self.keymap = keymap or Keymap()
        self.set_keymap({name: ",".join(keys) for name, keys in self.keymap.changed.items()})
        self._chat_screen: ChatScreen | None = None
        self._quit_confirmed = False
        self._terminal_clipboard: Clipboard | None = None
        self._attention: Attention | None = None
        self._has_terminal_focus: bool | None = None  # None: not reported yet
        self.theme_names: Sequence[str] = tuple(themes)
        self.crash = ""
        self.touched_at = 0.0  # when a key or the mouse was last used, by `clock`
        self.watchdog: Watchdog | None = None
        self._terminal_modes = TerminalModes()
        self._paths = paths
        self._clock = clock
        self._first_message = first_message
        for spec in themes.values():
            self.register_theme(textual_theme(spec))
        if theme in themes:
            self._set_first_theme(theme)

    def _set_first_theme(self, theme: str) -> None:
        """Set the theme before the first draw, which avoids parsing all style sheets twice."""
        self.set_reactive(App.theme, theme)
        dark = self.current_theme.dark
        self.set_class(dark, "-dark-mode").set_class(not dark, "-light-mode").add_class(f"-theme-{theme}")
        self.stylesheet.set_variables(self.get_css_variables())

    def on_mount(self) -> None:
        """Show the first screen; watch for signals and for the loss of the terminal."""
        self.show_first()
        # after a suspend, the terminal's alternate screen is empty
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if not self.is_headless:
            self._watch()
            self.set_interval(_TERMINAL_CHECK_SECONDS, self._check_terminal)

    def _watch(self) -> None:
        self.watchdog = Watchdog(
            {
                "SIGTERM": lambda: self.call_later(self._quit_on_signal),
                "SIGHUP": lambda: self.call_later(self._on_hangup),
            },
            self._terminal_modes.restore,
            self._paths.log_file if self._paths is not None else None,
        )
        self.watchdog.start()

    async def on_event(self, event: events.Event) -> None:
        """Record the time of the last input, and keep a widget focused whatever the mouse did."""
        if not isinstance(event, events.InputEvent | events.Paste):
            await super().on_event(event)
            return
        self.touched_at = self._clock()
        if event.is_forwarded or not self.screen_stack:
            await super().on_event(event)
            return
        if isinstance(event, events.Key | events.Paste):
            self.app_focus = True  # a key proves it, whatever the terminal reported; restores the focus
            keep_focus(self.screen)
        before = self.focused
        await super().on_event(event)
        if before is not None and isinstance(event, events.MouseEvent):
            keep_focus(self.screen, before)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Remove all colors under NO_COLOR; Textual's own filter would leave grays."""
        return [NoColor()] if self.no_color else super().get_line_filters()

    @property
    def chat(self) -> Chat:
        """The open chat. Raises RuntimeError before there is one."""
        if self._chat is None:
            raise RuntimeError("no chat is open yet")
        return self._chat

    @property
    def saved_session(self) -> str:
        """The id of the open session; empty until something of it is saved."""
        chat = self._chat
        return chat.session.info.id if chat is not None and chat.session.conversation.recent else ""

    def show_first(self) -> None:
        """Push the first screen: the chat's."""
        self.push_screen(self.chat_screen())

    def chat_screen(self) -> ChatScreen:
        """Create the screen for the chat."""
        from rolling_chat.tui.screens.chat_screen import ChatScreen  # noqa: PLC0415  # imports every command

        self._chat_screen = ChatScreen(self, self.chat, self._paths, self._clock, self._first_message)
        return self._chat_screen

    def copy_to_clipboard(self, text: str) -> None:
        """Copy `text` to the terminal's clipboard."""
        self.copied(text)

    def copied(self, text: str) -> bool:
        """Copy `text`; return whether it reached the clipboard, and if not, add a notice that says why."""
        self._clipboard = text
        if self._driver is None:
            return True
        if self._terminal_clipboard is None:
            environ = {} if self.is_headless else os.environ
            file = self._paths.data_dir / "clipboard.txt" if self._paths is not None else None
            self._terminal_clipboard = Clipboard(self._driver.write, environ, file)
        line = self._terminal_clipboard.put(text)
        if line and self._chat_screen is not None:
            self._chat_screen.state.notice(f"{line}.", warning=True)
        return not line

    def on_app_focus(self) -> None:
        """Record that the terminal has the focus."""
        self._has_terminal_focus = True

    def on_app_blur(self) -> None:
        """Record that the terminal has lost the focus."""
        self._has_terminal_focus = False

    def call_attention(self, line: str) -> bool:
        """Notify a user who is looking elsewhere of `line`, by a desktop notification or the bell.

        Returns False if the user is at the terminal, and so was not notified.
        """
        if self._driver is None:
            return False
        if self._attention is None:
            environ = {} if self.is_headless else os.environ
            self._attention = Attention(self._driver.write, environ, self.chat.settings.screen.notify)
        idle_seconds = self._clock() - self.touched_at
        return self._attention.call(line, has_focus=self._has_terminal_focus, idle_seconds=idle_seconds)

    async def action_quit(self) -> None:
        """Stop the running work and quit; ask first about processes that commands left running."""
        from rolling_chat.tui.dialogs.quitting import quit_question  # noqa: PLC0415  # not before the first paint

        await self._settle()
        if self._quit_confirmed:
            # a signal, or quitting again while the question is open: nobody agreed to keep the processes
            await self._end_leftovers()
            self.exit()
            return
        question = quit_question()
        if question is None:
            self.exit()
            return
        self._quit_confirmed = True
        await self.push_screen(question, self._quit_with)

    async def _quit_with(self, answer: str | None) -> None:
        from rolling_chat.tui.dialogs.quitting import apply_answer  # noqa: PLC0415

        self._quit_confirmed = False
        if answer is not None:
            await apply_answer(answer)
            self.exit()

    async def _quit_on_signal(self) -> None:
        """Quit on a signal without asking, ending the processes that commands left running."""
        self._quit_confirmed = True
        await self.action_quit()

    async def _end_leftovers(self) -> None:
        from rolling_chat.tui.dialogs.quitting import end_leftovers  # noqa: PLC0415

        await end_leftovers()

    async def _settle(self) -> None:
        if self._chat_screen is not None and self._chat_screen.is_mounted:
            await self._chat_screen.settle()
            await self.chat.session.servers.stop()
        if self._terminal_clipboard is not None:
            await self._terminal_clipboard.settle()

    async def _on_hangup(self) -> None:
        """Quit after SIGHUP, restoring the terminal if it is still there."""
        await (self._on_terminal_lost() if terminal_is_gone() else self._quit_on_signal())

    async def _check_terminal(self) -> None:
        if terminal_is_gone():
            await self._on_terminal_lost()

    async def _on_terminal_lost(self) -> None:
        """Save and close the session, and end the process without restoring the terminal."""
        _log.info("the terminal is gone")
        await self._settle()
        await self._end_leftovers()
        if self._chat is not None:
            self._chat.close()
        die_of_hangup()

    def fault(self, what: str, error: Exception) -> str:
        """Log an unexpected exception; return one line for the user that names it and the log."""
        _log.error("%s", what, exc_info=error)
        where = f"; details in {self._paths.log_file}" if self._paths is not None else ""
        return f"{what} on a fault of the program ({type(error).__name__}){where}"

    def _handle_exception(self, error: Exception) -> None:
        """Log an uncaught exception; Textual then restores the terminal."""
        self.crash = self.crash or self.fault("The screen broke", error)
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Exit without Textual's drawing of the traceback, which is in the log."""
        self._close_messages_no_wait()
