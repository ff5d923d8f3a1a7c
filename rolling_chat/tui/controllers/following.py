"""Follow the open session's conversation, which another terminal may be writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rolling_chat.agent import ChatError
from rolling_chat.tui.controllers.background import Coalesced, Workplace
from rolling_chat.tui.state.items import item_marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent import Chat
    from rolling_chat.messages import Message
    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.transcript import Transcript


class FollowingStage(Workplace, Protocol):
    """The part of the screen that following a session uses."""

    @property
    def transcript(self) -> Transcript:
        """The widget that shows the conversation."""
        ...


class Following:
    """Copies the session's messages, marks and notices to the screen's state."""

    def __init__(self, chat: Chat, state: ScreenState, stage: FollowingStage) -> None:
        self._chat = chat
        self._state = state
        self._stage = stage
        self._held_line = ""
        self._coming = False
        self._fault = ""
        self._trouble = ""  # of the store
        self._unread = ""  # the error that prevented the report
        self._looking = Coalesced(self._look)
        self._catching_up = Coalesced(self.catch_up)
        self._reading_older = Coalesced(self._read_older)
        self._wants_all = False
        chat.listener.on_older = self._put_above

    def load(self) -> None:
        """Show the newest part of the conversation, and the notices of the session."""
        self._unread = self._trouble = ""  # what was told of them is gone with all else
        session = self._chat.session
        self._state.load(session.conversation.recent, session.result_tokens(session.conversation.recent))
        if not self._chat.session.conversation.recent:
            self._state.notice(self._chat.session.model_line)
            self._state.welcome()
        holder = self._chat.session.holder
        for line in self._chat.session.notices:
            if holder and holder in line:
                self._held_line = line
            if line != self._held_line:
                self._state.notice(line)
            elif holder:
                self._state.notice(line, warning=True)
        self.mark()

    def mark(self) -> None:
        """Show which messages the user pinned or excluded."""
        if self._chat.session.conversation.is_whole:
            self._state.mark(item_marks(self._chat.session.messages, self._chat.session.pins.scope))

    async def catch_up(self) -> None:
        """Read the older messages and make the report, then show both; show an error as one line."""
        try:
            # painting meanwhile may have requested this a second time
            if not self._chat.session.preview.is_ready:
                await self._chat.session.preview.warm()
            self._unread = ""
        except ChatError as error:
            if str(error) != self._unread:
                self._unread = str(error)
                self._state.notice(self._unread, warning=True)
        self.mark()
        if self._chat.session.preview.is_ready:
            self._state.changed()  # otherwise painting would request it again, in a loop

    def look(self) -> None:
        """Show what another process wrote to the session, without scrolling, in the background.

        Each error is reported once, and so is a store that is out of reach, and that is back.
        """
        self._tell_trouble()
        if self._chat.session.holder and not self._state.busy:
            self._looking.ask(self._stage)

    def _tell_trouble(self) -> None:
        trouble, before = self._chat.trouble, self._trouble
        if trouble and not before:
            self._state.notice(f"{trouble[0].upper()}{trouble[1:]}.", warning=True)
        elif before and not trouble:
            self._state.notice("The session store answers again.")
        self._trouble = trouble

    async def _look(self) -> None:
        try:
            await self._take_news()
            self._fault = ""
        except ChatError as error:
            if str(error) != self._fault:
                self._fault = str(error)
                self._state.notice(self._fault, warning=True)

    async def _take_news(self) -> None:
        chat, session, holder = self._chat, self._chat.session, self._chat.session.holder
        model = session.model_line
        changed = await session.conversation.queue.run(session.refresh)
        if chat.session is not session or self._state.busy:
            return
        if not changed and not self._coming and session.holder == holder:
            return
        self.load()
        self.catch_up_in_background()
        self._coming = changed and bool(chat.session.holder)
        if self._coming:
            self._state.mark_still_streaming()
        if not chat.session.holder:
            self._state.notice("The other terminal has closed this session; you can continue it here.")
        if chat.session.model_line != model:
            self._state.notice(chat.session.model_line)
        if chat.session.conversation.is_whole:
            self.mark()
        self._state.changed()

    def catch_up_in_background(self) -> None:
        """Run `catch_up` in the background, if the report of the next request is not ready."""
        if not self._chat.session.preview.is_ready and not self._unread:
            self._catching_up.ask(self._stage)

    def read_older_in_background(self, *, whole: bool) -> None:
        """Read older messages in the background: the next few, or all if `whole`."""
        if self._chat.session.conversation.is_whole:
            return
        self._wants_all = self._wants_all or whole
        self._reading_older.ask(self._stage)

    async def _read_older(self) -> None:
        wants_all, self._wants_all = self._wants_all, False
        try:
            await self._chat.session.read_up(whole=wants_all)
        except ChatError as error:
            self._state.notice(str(error), warning=True)
        self._stage.transcript.show(self._state.items)
        self._stage.transcript.return_to_start()
        self.mark()
        self._state.changed()

    def _put_above(self, older: Sequence[Message]) -> None:
        self._state.prepend(older, self._chat.session.result_tokens(older))
        # sync part by part: a long session at once would block the keys, and its texts are compressed by then
        self._stage.transcript.document.sync()
