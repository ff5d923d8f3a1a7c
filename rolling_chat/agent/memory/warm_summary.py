"""Ask for a summary after the chat's own prompt, which the provider has in its cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.request.builder import PlannedRequest, ToolChoice
from rolling_chat.agent.request.planner import Planner
from rolling_chat.context.report import Fate
from rolling_chat.context.summary_due import DuePass
from rolling_chat.context.summary_request import SummaryOptions, warm_request_text
from rolling_chat.messages import Message

# masked and shortened results do no harm: a summary is made from masked results anyway
_USABLE = frozenset({Fate.SENT, Fate.SHORTENED, Fate.MASKED, Fate.EXCLUDED})


@dataclass(frozen=True, slots=True)
class WarmPrompt:
    """The chat's own prompt of `branch`, to which a question for a summary is appended.

    `stays` is the user's message before which the summary ends. `model` and `address` are those whose cache
    has the prompt.
    """

    planner: Planner
    branch: Sequence[Message]
    stays: Message
    tool_choice: ToolChoice
    model: str
    address: str | None

    @classmethod
    def of(cls, planner: Planner, branch: Sequence[Message], due: DuePass) -> WarmPrompt | None:
        """Return the prompt for a pass; None if the cache is not known to be warm, or lacks what is due."""
        cache, setup = planner.cache, planner.setup
        rule, last = cache.rule, cache.last_prefix
        if rule is None or last is None or not cache.is_warm or setup.tool_calls == "text":
            return None
        # keep the tool choice of the last request if another would make the provider read all messages again
        choice: ToolChoice = "none"
        if rule.counts_tool_choice:
            choice = "none" if last.tool_choice == "none" else "auto"
        if not 0 < due.through < len(branch) or not planner.is_quick(branch):
            return None
        return cls(planner, branch, branch[due.through], choice, setup.model, setup.address)

    def ask(self, previous: str, _messages: str, options: SummaryOptions) -> str:
        """Return the text of the question."""
        return warm_request_text(self.stays.text, previous, options)

    @property
    def is_current(self) -> bool:
        """Whether the chat still goes to the model whose cache has the prompt."""
        setup = self.planner.setup
        return (self.model, self.address) == (setup.model, setup.address)

    def plan(self, question: str) -> PlannedRequest | None:
        """Plan the request; None if it would not fit or would go to another model."""
        if not self.is_current:
            return None
        return self.planner.plan_question(self.branch, question, self.tool_choice)

    def price(self, question: str, due: DuePass, generation: int) -> float | None:
        """Return the input cost of the request, in US dollars; None if it is unusable or its price unknown.

        It must begin like the last request and contain all that is due and the summary of `generation`, 0 for
        none.
        """
        planned, last = self.plan(question), self.planner.cache.last_prefix
        if planned is None or last is None or not last.is_continued_by(planned.prefix):
            return None
        summary = planned.plan.summary
        if (summary.generation if summary is not None else 0) != generation:
            return None
        rows = planned.report.rows[due.first : due.through + 1]
        if any(row.fate not in _USABLE for row in rows):
            return None
        return self.planner.cache.warm_price(planned)
