"""The details that the prompt of one session has lost; the user can restore them to its summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.memory.left_out_lines import is_there, lost_lines, with_line_added
from rolling_chat.agent.memory.proposal import Proposal
from rolling_chat.agent.memory.summaries import Summaries
from rolling_chat.agent.request.plan_state import as_summary
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import PromptReport, count_tokens
from rolling_chat.context.summary_left_out import LeftOutLine


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The lines dropped from the prompt of a session that its summary does not mention."""

    state: SessionState
    summaries: Summaries

    async def lost(self, report: PromptReport) -> Sequence[LeftOutLine]:
        """Return the lines missing from the next request, whose report is given; the most needed first."""
        current = self.summaries.current
        text = current.text if report.summary and current else ""
        return await lost_lines(self.state.conversation, text, report)

    def stands_for(self, index: int, report: PromptReport) -> bool:
        """Return whether the summary in the next request, whose report is given, covers a message."""
        summary = as_summary(self.summaries.current) if report.summary else None
        return summary is not None and summary.covers(index, index)

    def put_back(self, line: LeftOutLine) -> None:
        """Add a line to the summary from the next request on. Raises ChatError if it does not fit."""
        current = self.summaries.current
        if current is None or not is_there(self.state.conversation, line):
            raise ChatError("The conversation has changed meanwhile: ask for what was lost again.")
        self.summaries.edit(self._with_line(current.text, line))

    def put_in(self, proposal: Proposal, line: LeftOutLine) -> Proposal:
        """Add one of its left-out lines to a proposal. Raises ChatError if there is no room for it."""
        planner, text = self.state.planner, self._with_line(proposal.summary.text, line)
        summary = replace(proposal.summary, text=text, tokens_after=count_tokens(text, planner.setup.model))
        _, after = planner.forecast.with_summary(self.state.conversation.messages, as_summary(summary))
        rest = [one for one in proposal.left_out if one is not line]
        return replace(proposal, summary=summary, after=after, left_out=rest)

    def _with_line(self, text: str, line: LeftOutLine) -> str:
        return with_line_added(text, line, self.summaries.max_tokens, self.state.planner.setup.model)
