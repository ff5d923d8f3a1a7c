"""Assemble a prompt: the third stage, which turns decisions into messages and the next plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rolling_chat.context.branch_parts import Inferred
from rolling_chat.context.budget import Budget
from rolling_chat.context.pins import PinEffects
from rolling_chat.context.plan import ContextPlan, PlanIndex, SentPrompt, fingerprint
from rolling_chat.context.prompt_decisions import Outcome
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem
from rolling_chat.context.prompt_walk import PromptInputs, WalkedBranch
from rolling_chat.context.report import Fate
from rolling_chat.context.summary_text import Summary
from rolling_chat.context.surviving import is_answer
from rolling_chat.context.turns import TURN
from rolling_chat.messages import Json, JsonObject, Message


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """Everything that a prompt consists of and that its report shows.

    `history` and `current` are the items sent after the system message, in order; `unfit` are the indexes of
    messages that no prompt can carry; `before` are the decisions of the given plan; `pin_effects` are the
    messages that the user pinned or excluded; `summary` is the active one; `inferred` is the part of history
    that was not read.
    """

    branch: Sequence[Message | JsonObject]
    system: Message | None
    history: Sequence[PromptItem]
    current: Sequence[PromptItem]
    decisions: Decisions
    before: Decisions
    unfit: Sequence[int]
    pin_effects: PinEffects
    summary: Summary | None
    inferred: Inferred

    @property
    def items(self) -> list[PromptItem]:
        """The items sent after the system message."""
        return [*self.history, *self.current]

    @property
    def pinned(self) -> int:
        """The upper bound of the pinned messages in the history, in tokens."""
        return sum(item.bound for item in self.history if item.index in self.pin_effects.pinned)

    @property
    def summarized(self) -> int:
        """The number of messages that the summary replaces; 0 if its text had to be dropped."""
        is_said = self.summary is not None and bool(self.summary.text)
        return self.decisions.omitted.of(SUMMARIZED) if is_said else 0

    def parts(self, budget: Budget) -> Mapping[str, int]:
        """Return the size of each named part of the prompt, as upper bounds in tokens."""
        users = sum(item.bound for item in self.current if item.message.role == "user")
        return {
            "system prompt": budget.system,
            "tools": budget.tools,
            "history": sum(item.bound for item in self.history) - self.pinned + self.inferred.bound,
            "pinned messages": self.pinned,
            "current message": users,
            "tool work of this turn": sum(item.bound for item in self.current) - users,
            "reserve for the answer": budget.reserve,
        }


def assemble(inputs: PromptInputs, walked: WalkedBranch, outcome: Outcome) -> AssembledPrompt:
    """Combine the system message, the history and the current turn."""
    turns = outcome.turns
    if turns and turns[-1] and is_answer(turns[-1][-1]):
        # no turn is running: for the next request, everything is history
        turns = [*turns, []]
    omitted = outcome.decisions.omitted
    return AssembledPrompt(
        branch=inputs.branch,
        system=outcome.notice.appended_to(inputs.system),
        history=[item for turn in turns[:-1] for item in turn],
        current=turns[-1] if turns else [],
        decisions=outcome.decisions,
        before=walked.before,
        unfit=tuple(index for index in walked.index.unfit if index not in omitted),
        pin_effects=inputs.pin_effects,
        summary=outcome.notice.summary,
        inferred=walked.inferred,
    )


def messages_to_send(assembled: AssembledPrompt) -> list[Message | dict[str, Json]]:
    """Return the prompt's messages, of the type that was given (dictionaries or `Message`)."""
    are_messages = bool(assembled.branch) and isinstance(assembled.branch[0], Message)
    if are_messages:
        systems = [assembled.system] if assembled.system else []
        return [*systems, *(item.message for item in assembled.items)]
    system = [assembled.system.to_dict()] if assembled.system else []
    return [*system, *(_as_dict(item, assembled.branch) for item in assembled.items)]


def _as_dict(item: PromptItem, messages: Sequence[Message | JsonObject]) -> dict[str, Json]:
    original = messages[item.index] if item.index >= 0 else None
    sent = original if isinstance(original, Mapping) and item.fate is Fate.SENT else item.message.to_dict()
    return {key: value for key, value in sent.items() if key != TURN}


def next_plan(inputs: PromptInputs, walked: WalkedBranch, assembled: AssembledPrompt) -> ContextPlan:
    """Return the plan for the next call, with the new decisions and the sent prompt."""
    sizes = inputs.sizes
    fixed, estimate = sizes.fixed(assembled.system), sizes.fixed_estimate(assembled.system)
    sent = SentPrompt(sizes.model or "", tuple(assembled.items), fixed.system + fixed.tools, estimate)
    plan = _decided_plan(inputs, assembled) if inputs.config.enabled else inputs.given_plan
    return replace(
        plan or ContextPlan(),
        pins=inputs.pins,
        confirmed=sizes.confirmed,
        measured=sizes.measured,
        sent=sent,
        doubted=inputs.given_plan.doubted if inputs.given_plan else 0,
        index=_next_index(walked, assembled),
    )


def _decided_plan(inputs: PromptInputs, assembled: AssembledPrompt) -> ContextPlan:
    return ContextPlan(
        model=inputs.sizes.model or "",
        window=inputs.window,
        seen=len(inputs.branch),
        fingerprint=fingerprint(inputs.branch[-1]) if inputs.branch else "",
        decisions=assembled.decisions,
        summary=assembled.summary,
    )


def _next_index(walked: WalkedBranch, assembled: AssembledPrompt) -> PlanIndex:
    branch, last = assembled.branch, {id(item) for item in walked.closing}
    items = tuple(item for item in assembled.items if id(item) not in last)
    return replace(
        walked.index,
        pin_effects=assembled.pin_effects,
        seen=len(branch),
        last=branch[-1] if branch else None,
        items=items,
        sources=tuple(branch[item.index] for item in items if item.index >= 0),
    )
