"""Handle the requests of one session that do not fit, and messages that are too large by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rolling_chat.agent.attachments import break_long_lines
from rolling_chat.agent.context_settings import Overrides
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.history import History
from rolling_chat.agent.memory.summaries import Summaries
from rolling_chat.agent.request.preview import RequestPreview
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.oversized import (
    LargeMessage,
    Obstacle,
    as_head_and_tail,
    as_opening,
    find_obstacle,
    note_on_file,
)
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.mentions import remarked
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background


@dataclass(frozen=True, slots=True)
class OversizedMessages:
    """Finds out why a request did not fit, and replaces a message that is too large. Raises ChatError."""

    runtime: Runtime
    state: SessionState
    gate: TurnGate
    summaries: Summaries
    history: History
    preview: RequestPreview
    overrides: Overrides

    async def find_obstacle(self) -> Obstacle:
        """Find out why the request of the last turn did not fit."""
        setup, report = self.state.setup, self.preview.report()
        rolled = report if setup.rolling else await self.overrides.preview()
        return find_obstacle(report, rolled, can_read=setup.reads_files)

    async def keep_as_file(self, large: LargeMessage, *, head_and_tail: bool) -> str:
        """Undo a message that is too large; its text stays in the session and is saved as a private file.

        Return the text to send instead: its head and tail or its first line, and the name of the file. Raises
        ChatError and keeps the message if it is not the newest or the file cannot be written.
        """
        conversation = self.state.conversation
        self.gate.require_idle()
        self.summaries.cancel()
        recent = conversation.recent
        message = recent[-1] if recent else None
        if message is None or message.id != large.id:
            raise ChatError("Not sent: the conversation has moved on.")
        with in_words():
            text = await in_background(partial(self._text_for, large, message, head_and_tail=head_and_tail))
        if self.state.is_closed or conversation.recent[-1] is not message:
            raise ChatError("Not sent: the conversation has moved on.")
        self.history.undo()
        return text

    def _text_for(self, large: LargeMessage, message: Message, *, head_and_tail: bool) -> str:
        state, whole = self.state, message.text
        text = break_long_lines(whole)
        path = self.runtime.attachments.keep(state.info.on_disk, text)
        note = note_on_file(path, text, large, state.setup.config.max_tool_result_tokens)
        if not head_and_tail:
            # only the text is too large, so its pictures are attached again
            pictures = [one.mention for one in message.attachments if one.picture]
            return as_opening(remarked(message.words, pictures), note)
        return as_head_and_tail(whole, note, large, state.sizes.estimator.count_text)
