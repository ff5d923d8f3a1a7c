"""The gauge's figures: the report of the next request, the draft, and what streams in."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from rolling_chat.agent import ChatError

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.context.report import PromptReport

_log = logging.getLogger("rolling_chat.tui")


class Meter:
    """Keeps the last report; asks for another only when the conversation has changed.

    `cost` is what the session has cost in US dollars, None where prices are unknown.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._report: PromptReport | None = None
        self.draft_tokens = 0
        self.cost: float | None = None

    @property
    def report(self) -> PromptReport | None:
        """The last report; None until there is one."""
        return self._report

    def take(self, report: PromptReport) -> None:
        """A request is about to leave with this report."""
        self._report = report

    def refresh(self) -> None:
        """Ask for the report of the next request."""
        try:
            self._report = self._chat.report()
            self.cost = self._chat.usage.cost
        except ChatError as error:
            _log.warning("no report: %s", error)

    def count_draft(self, draft: str) -> None:
        """Count what stands in the prompt box, in tokens; not before the first report, which loads much."""
        ready = self._report is not None and bool(draft.strip())
        self.draft_tokens = self._chat.count_draft(draft) if ready else 0

    def reading(self, streamed: int = 0) -> PromptReport | None:
        """What the gauge shows; `streamed` tokens came in since the report."""
        report = self._report
        if report is None:
            return None
        if streamed:
            report = replace(report, current=report.current + streamed, exact=False)
        return report.with_draft(self.draft_tokens)
