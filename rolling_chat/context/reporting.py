"""Drawing the prompt report from a draft."""

from __future__ import annotations

from collections.abc import Iterator

from rolling_chat.context.budget import Budget
from rolling_chat.context.draft import Draft, Sizes
from rolling_chat.context.ladder import Measured
from rolling_chat.context.report import Fate, PromptReport, Row
from rolling_chat.context.tokens import PRIMING_TOKENS

_REASONS = {"2": "older than the history budget holds", "3c": "an older iteration of this turn"}
_UNANSWERING = "a result that answers no call"


def draw_report(draft: Draft, sizes: Sizes) -> PromptReport:
    """The division of the window and a row for every message of the branch."""
    budget = sizes.budget(draft.system)
    system = (sizes.estimate.count_message(draft.system) if draft.system else 0) + PRIMING_TOKENS
    tools = sizes.estimate.count_tools(sizes.tools)
    history = sum(item.tokens for item in draft.history)
    current = sum(item.tokens for item in draft.current)
    bound = budget.system + budget.tools + sum(item.bound for item in draft.kept)
    return PromptReport(
        model=sizes.model or "",
        rolling=sizes.config.enabled,
        window=budget.window,
        reserve=budget.reserve,
        margin=budget.margin,
        system=system,
        tools=tools,
        summary=0,
        history=history,
        current=current,
        bound=bound,
        within_budget=bound <= budget.room,
        history_budget=max(0, budget.history),
        trim_at=_trim_at(budget, system + tools + history + current, bound, history, sizes),
        floor=_floor(draft, budget),
        rows=tuple(sorted(_rows(draft, sizes), key=lambda row: row.index)),
        turns=sum(item.entry.message.role == "user" for item in draft.kept),
    )


def _trim_at(budget: Budget, count: int, bound: int, history: int, sizes: Sizes) -> int:
    """The prompt's size, in estimated tokens, at which something must leave."""
    family = sizes.bound.family
    at_window = max(0, count + int((budget.room - bound) * family.factor / family.prior))
    if not sizes.config.enabled or budget.history_cap <= 0:
        return at_window
    return min(at_window, count - history + budget.history_cap)


def _floor(draft: Draft, budget: Budget) -> int:
    user = next((item.bound for item in draft.current if item.entry.message.role == "user"), 0)
    return budget.system + budget.tools + budget.reserve + budget.margin + user


def _rows(draft: Draft, sizes: Sizes) -> Iterator[Row]:
    count = sizes.estimate.count_message
    if draft.system is not None and draft.sources[0].role == "system":
        given = draft.sources[0]
        yield Row(0, given.id, "system", Fate.SENT, "", count(given), count(draft.system))
    for item in draft.measured:
        if item.entry.index >= 0:
            yield _row(item, draft, sizes)
    for index in draft.unanswering:
        message = draft.sources[index]
        yield Row(index, message.id, message.role, Fate.REPAIRED, "repair", count(message), 0, _UNANSWERING)


def _row(item: Measured, draft: Draft, sizes: Sizes) -> Row:
    index = item.entry.index
    source = draft.sources[index]
    before = sizes.estimate.count_message(source)

    def row(fate: Fate, layer: str, after: int, reason: str) -> Row:
        return Row(index, source.id, source.role, fate, layer, before, after, reason)

    if (layer := draft.decisions.omitted.get(index)) is not None:
        return row(Fate.OMITTED, layer, 0, _REASONS[layer])
    if item.entry.repair:
        return row(Fate.REPAIRED, "repair", item.tokens, item.entry.repair)
    if index in draft.decisions.levels:
        return row(Fate.SHORTENED, "levelled", item.tokens, "shares the room that is left")
    if item.entry.message is not source:
        cap = sizes.config.max_tool_result_tokens
        return row(Fate.SHORTENED, "3a", item.tokens, f"over the cap of {cap:,} tokens a result")
    return row(Fate.SENT, "", item.tokens, "")
