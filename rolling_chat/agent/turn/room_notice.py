"""Tell the model when little room is left before older messages are dropped from its prompt.

The line is added to the newest result or message, so that the beginning of the prompt does not change, and
at most once between two trims. After a trim, the notice in the system message gives the new room.
"""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import PromptReport
from rolling_chat.figures import rounded
from rolling_chat.message_lines import ROOM_MARK
from rolling_chat.messages import Message
from rolling_chat.notes import NOTE_TOOL

_LOW = 0.2  # share of the room for the conversation


class RoomNotice:
    """Decides by the newest request's report when to tell the model of a session how much room is left."""

    def __init__(self, conversation: Conversation, planner: Planner, state: SessionState) -> None:
        self._conversation = conversation
        self._planner = planner
        self._state = state
        self._report: PromptReport | None = None
        self._end = 0  # the index after the last message in the report

    def take(self, report: PromptReport) -> None:
        """Use the report of a request that is being sent."""
        self._report, self._end = report, self._conversation.end_index

    def line_with(self, new: Message) -> str:
        """Return the line to send with a message that is being added to the conversation; empty for none."""
        report, conversation = self._report, self._conversation
        count = conversation.end_index - self._end
        if report is None or not self._planner.setup.rolling or count < 0:  # negative after an undo
            return ""
        recent = conversation.recent
        added = [*recent[len(recent) - count :], new]
        left = report.until_trim - sum(map(self._size, added))
        room = report.until_trim + report.history + report.current
        # with nothing left, the next request trims, and its notice gives the new room
        if not 0 < left < _LOW * room or self._was_told(recent):
            return ""
        what = f"about {rounded(left):,} tokens are left before older messages leave your prompt"
        return f"{ROOM_MARK}{what}{self._advice}]"

    def _size(self, message: Message) -> int:
        """Estimate the tokens that a message adds; a result is cut to the limit on results."""
        sizes = self._state.sizes
        if message.role != "tool":
            return sizes.of(message)
        return min(sizes.about(message.text), self._planner.setup.config.max_tool_result_tokens)

    @property
    def _advice(self) -> str:
        has_notes = any(tool.name == NOTE_TOOL for tool in self._planner.setup.tools)
        return "; note what must stay" if has_notes else ""

    def _was_told(self, recent: Sequence[Message]) -> bool:
        """Return whether the model has been told since the last trim."""
        plan = self._planner.plan_state.plan
        seen = plan.decisions.notice.seen if plan is not None else 0
        since = max(0, seen - self._conversation.first_index)
        return any(ROOM_MARK in (one.note or one.text) for one in recent[since:] if one.role != "assistant")
