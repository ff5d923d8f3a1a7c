"""Startup: the screen appears and accepts keys before anything else is loaded."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from textual import events, work

from rolling_chat.tui.app import RollingChatApp
from rolling_chat.tui.keymap import Keymap
from rolling_chat.tui.screens.start_screen import StartScreen
from rolling_chat.tui.terminal.bracketed import keep_pastes_whole

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.agent import Chat
    from rolling_chat.settings.paths import Paths
    from rolling_chat.settings.schema import Settings
    from rolling_chat.settings.themes import ThemeSpec
    from rolling_chat.settings.trust import FolderTrust

_log = logging.getLogger("rolling_chat.tui")

_CHAT_MODE = "chat"
# handled at once, so not replayed with the other early keys
_IMMEDIATE_KEYS = {"ctrl+q", "ctrl+z"}


class _Phase(Enum):
    """The phases of startup."""

    OPENING = auto()  # the chat is being opened
    ASKING = auto()  # before that, the user is asked whether to trust the folder
    CHANGING = auto()  # the chat's screen replaces the start screen
    CATCHING_UP = auto()  # early keys are replayed into it
    READY = auto()


class StartingApp(RollingChatApp):
    """An app that opens its chat after the first paint, in a thread, and queues keys typed meanwhile.

    The start screen is the app's first mode, the chat screen its second. `folder` is shown until the chat
    is open; `failure` is the exception if it could not be opened. The user is asked first about whatever
    `trust` leaves undecided.
    """

    def __init__(
        self,
        open_chat: Callable[[], Chat],
        *,
        folder: str = "",
        trust: FolderTrust | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(None, **rest)
        self._trust = trust
        self.failure: Exception | None = None
        self._open_chat = open_chat
        self._start = StartScreen(folder)
        self._queued: list[events.Key | events.Paste] = []
        self._phase = _Phase.OPENING
        self._quit_pending = False
        self._painted_at = math.inf

    @property
    def opened(self) -> Chat | None:
        """The chat; None if it could not be opened."""
        return self._chat

    def get_default_screen(self) -> StartScreen:
        """Return the start screen as the app's default screen, which is cheaper than pushing it."""
        return self._start

    def compose(self) -> ComposeResult:
        """Yield the start screen's widgets, so that they exist before the first key."""
        yield from self._start.parts()

    def show_first(self) -> None:
        """Focus the start screen's box, and open the chat after the first paint."""
        self._start.take_keys()
        self._start.call_after_refresh(self._after_first_paint)

    async def on_event(self, event: events.Event) -> None:
        """Queue typed keys until there is a prompt box for them."""
        if isinstance(event, events.Key | events.Paste) and self._must_queue(event):
            self._queued.append(self._replayable(event))
            if self._phase is not _Phase.OPENING:
                return
        await super().on_event(event)

    async def action_quit(self) -> None:
        """Quit; while the screens are being switched, quit after that."""
        if self._phase is _Phase.CHANGING:
            self._quit_pending = True
            return
        await super().action_quit()

    def _must_queue(self, event: events.Key | events.Paste) -> bool:
        if self._phase in (_Phase.READY, _Phase.ASKING) or event.is_forwarded:
            return False
        return not (isinstance(event, events.Key) and event.key in _IMMEDIATE_KEYS)

    def _replayable(self, event: events.Key | events.Paste) -> events.Key | events.Paste:
        """Return a copy of an event, to be handled again."""
        match event:
            case events.Paste():
                return events.Paste(event.text)
            case events.Key(key="ctrl+j") if event.time < self._painted_at:
                # before the terminal is in raw mode, Enter arrives as a line feed
                return events.Key("enter", "\r")
        return events.Key(event.key, event.character)

    def _after_first_paint(self) -> None:
        self._painted_at = events.Event().time
        self._show_chat()

    @work(exit_on_error=True)
    async def _show_chat(self) -> None:
        if self._trust is not None and self._trust.undecided():
            await self._ask_for_trust(self._trust)
        try:
            # awaited, not left to itself: a chat that was opened has to be closed
            await asyncio.to_thread(self._load)
        except Exception as error:  # reported once the terminal is the shell's again
            self.failure = error
            self.exit()
            return
        self._apply_settings(self.chat.settings)
        self._phase = _Phase.CHANGING  # keys reach neither screen until the switch is done
        screen = self.chat_screen()
        self.add_mode(_CHAT_MODE, lambda: screen)
        self._start.set_focus(None)  # hidden from now on: its cursor need not blink
        await self.switch_mode(_CHAT_MODE)
        painted = asyncio.Event()
        screen.call_after_refresh(painted.set)
        await painted.wait()
        self._phase = _Phase.CATCHING_UP
        if self._quit_pending:
            await self.action_quit()
            return
        screen.set_focus(screen.prompt)
        while self._queued:  # more keys may arrive meanwhile; they go to the end
            await self._replay(self._queued.pop(0))
        self._phase = _Phase.READY

    async def _ask_for_trust(self, trust: FolderTrust) -> None:
        from rolling_chat.tui.dialogs.trust_screen import ask_for_trust  # noqa: PLC0415  # rarely needed

        self._phase = _Phase.ASKING
        await ask_for_trust(self, trust, self._queue)
        self._phase = _Phase.OPENING

    def _queue(self, event: events.Key | events.Paste) -> None:
        """Queue a key typed while the question was open that was not an answer to it."""
        self._queued.append(event)
        self._start.echo(event)

    def _apply_settings(self, settings: Settings) -> None:
        """Apply theme and keys again: a newly trusted folder may have changed the settings."""
        self.theme = settings.theme
        self.keymap = Keymap.of(settings.keys)
        self.set_keymap({name: ",".join(keys) for name, keys in self.keymap.changed.items()})

    def _load(self) -> None:
        from rolling_chat.tui.screens import chat_screen  # noqa: F401, PLC0415  # imports every command

        self._chat = self._open_chat()

    async def _replay(self, event: events.Key | events.Paste) -> None:
        """Handle an event and wait until everything it causes is done."""
        await super().on_event(event)
        for pump in (self.focused or self.screen).ancestors_with_self:
            done = asyncio.Event()
            pump.call_later(done.set)
            await done.wait()


def run_app(
    open_chat: Callable[[], Chat],
    *,
    settings: Settings,
    themes: Mapping[str, ThemeSpec],
    paths: Paths,
    folder: str = "",
    first_message: str = "",
    trust: FolderTrust | None = None,
) -> tuple[int, Chat | None]:
    """Show a chat until the user quits; return the exit code and the chat.

    The code is 1 after a crash, which is reported on stderr. The caller closes the chat, if it was opened,
    and prints its resume command. `open_chat` runs in a thread; its exception is raised here, after the
    terminal is restored.
    """
    app = StartingApp(
        open_chat,
        folder=folder,
        trust=trust,
        theme=settings.theme,
        themes=themes,
        paths=paths,
        keymap=Keymap.of(settings.keys),
        first_message=first_message,
    )
    keep_pastes_whole()
    try:
        app.run()
    except Exception as error:  # outside the app's own loop, such as a terminal that cannot be opened
        app.crash = app.crash or app.fault("The screen broke", error)
    finally:
        if app.watchdog is not None:
            app.watchdog.stop()
    if app.failure is not None:
        raise app.failure
    if app.crash:
        print(f"rolling-chat: {app.crash}", file=sys.stderr)  # noqa: T201  # the terminal is the shell's again
    return (1 if app.crash else 0), app.opened
