"""Build the report of an assembled prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Set
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType

from rolling_chat.context.band import band_around
from rolling_chat.context.budget import Budget
from rolling_chat.context.prompt_assembly import AssembledPrompt
from rolling_chat.context.prompt_items import SUMMARIZED, PromptItem, Sizes
from rolling_chat.context.repair import ANSWERS_NO_CALL
from rolling_chat.context.report import Fate, PromptReport, Row, Rows
from rolling_chat.context.turns import opens_with_system
from rolling_chat.messages import Message

_PACE_TURNS = 5  # turns that the pace averages: enough to smooth it, few enough to follow a change

_REASONS = {
    "1": "beyond the history window",
    "2": "older than the history budget allows",
    "3c": "an older iteration of its turn",
    SUMMARIZED: "the summary covers it",
}


def build_report(assembled: AssembledPrompt, sizes: Sizes) -> PromptReport:
    """Report how a prompt divides the window; build each message's row when it is first read."""
    budget = sizes.budget(assembled.system)
    cap = budget.history_cap if sizes.config.enabled else 0
    fixed = sizes.fixed(assembled.system)
    system, tools = fixed.system, fixed.tools
    summary = min(system, sizes.estimate.count_text(assembled.summary.block)) if assembled.summary else 0
    notice, count_text = assembled.decisions.notice, sizes.estimate.count_text
    notes = min(system - summary, count_text(notice.notes_block))
    names = min(system - summary - notes, count_text(notice.names_block(recall=sizes.config.recall)))
    inferred = assembled.inferred
    history = sum(item.tokens for item in assembled.history) + inferred.tokens
    current = sum(item.tokens for item in assembled.current)
    tested = bound = _tested_size(assembled, budget)
    if sizes.is_unproven:
        bound = _upper_bound(assembled, sizes.proven)
    count = system + tools + history + current
    band = band_around(assembled.items, fixed, sizes)
    size_at_full_window, pace = _size_at_full_window(budget, count, tested, sizes), _pace(assembled, sizes)
    until_full = size_at_full_window - count
    return PromptReport(
        model=sizes.model or "",
        rolling=sizes.config.enabled,
        window=budget.window,
        reserve=budget.reserve,
        margin=budget.margin,
        system=system - summary,
        tools=tools,
        summary=summary,
        history=history,
        current=current,
        bound=bound,
        within_budget=tested <= budget.room,
        unproven=tested if sizes.is_unproven else 0,
        history_budget=max(0, budget.history),
        is_history_capped=budget.history < budget.available,
        trim_at=_trim_at(
            size_at_full_window, count - history + cap if cap > 0 else size_at_full_window, budget, sizes
        ),
        floor=_floor(assembled, budget),
        rows=Rows(len(assembled.branch), _RowBuilder(assembled, sizes, system).row),
        fates=_fates(assembled),
        trimmed=assembled.decisions != assembled.before,
        exact=sizes.confirmed is not None,
        below=band.below + inferred.tokens // 2,
        above=band.above + inferred.tokens,
        spread=band.spread,
        turns=sum(item.opens_turn for item in assembled.items) + inferred.turns,
        until_trim=min(until_full, _room_below_cap(cap, history + current, pace)) if cap > 0 else until_full,
        pace=pace,
        stand_ins=sum(item.tokens for item in takewhile(_is_invented, reversed(assembled.current))),
        notes=notes,
        names=names,
        inserted=sum(item.tokens for item in assembled.items if _is_invented(item)),
    )


def _tested_size(assembled: AssembledPrompt, budget: Budget) -> int:
    said = sum(item.bound for item in assembled.items) + assembled.inferred.bound
    return budget.system + budget.tools + said


def _upper_bound(assembled: AssembledPrompt, sizes: Sizes) -> int:
    """Return the upper bound of a prompt that was planned by its estimate."""
    budget = sizes.budget(assembled.system)
    said = sum(sizes.remeasured(item).bound for item in assembled.items) + assembled.inferred.bound
    return budget.system + budget.tools + said


def _size_at_full_window(budget: Budget, count: int, bound: int, sizes: Sizes) -> int:
    """Return the prompt's size, in estimated tokens, at which the window is full."""
    if sizes.is_unproven:
        return max(0, count + budget.room - bound)
    factor = sizes.bound.family.factor * sizes.config.calibration.estimate
    return max(0, count + int((budget.room - bound) * factor / sizes.bound.prior))


def _trim_at(size_at_full_window: int, size_at_cap: int, budget: Budget, sizes: Sizes) -> int:
    """Return the size at which the next trim happens; with rolling off, the room for the prompt."""
    return min(size_at_full_window, size_at_cap) if sizes.config.enabled else budget.room


def _is_invented(item: PromptItem) -> bool:
    return item.index < 0


def _room_below_cap(cap: int, said: int, pace: int) -> int:
    """Return how many tokens may be added before history exceeds its cap.

    The cap is checked when a turn begins, so the turn that exceeds it is still sent unchanged."""
    return cap - said + (pace if said <= cap else 0)


def _pace(assembled: AssembledPrompt, sizes: Sizes) -> int:
    """Return the mean size of the newest complete turns before shortening, in tokens; 0 if there are none."""
    grown, whole, seen, turn = 0, 0, 0, list[PromptItem]()
    end = next((item.index for item in assembled.current if item.index >= 0), len(assembled.branch))
    for item in reversed(assembled.history):
        turn.append(item)
        if not item.opens_turn:
            continue
        if sum(one.index >= 0 for one in turn) == end - item.index:
            grown += sum(_unshortened_tokens(one, sizes) for one in turn)
            whole += 1
        seen, end, turn = seen + 1, item.index, []
        if seen == _PACE_TURNS:
            break
    return math.ceil(grown / whole) if whole else 0


def _unshortened_tokens(item: PromptItem, sizes: Sizes) -> int:
    """Return the tokens of a message before any decision about it; the cap on results is not a decision."""
    if item.layer not in {"3b", "levelled", "arguments"}:
        return item.tokens
    before = sizes.measure(item.normalized.message, item.index)[0]
    return min(before, sizes.config.max_tool_result_tokens) if item.message.role == "tool" else before


def _floor(assembled: AssembledPrompt, budget: Budget) -> int:
    user = next((item for item in assembled.current if item.message.role == "user"), None)
    pinned = (
        item.bound
        for item in assembled.items
        if item.index in assembled.pin_effects.pinned and item is not user
    )
    fixed = budget.system + budget.tools + budget.reserve + budget.margin
    return fixed + sum(pinned) + (user.bound if user else 0)


def _fates(assembled: AssembledPrompt) -> Mapping[Fate, int]:
    fates = Counter(item.fate for item in assembled.items if item.index >= 0)
    fates[Fate.SUMMARIZED] += assembled.summarized
    fates[Fate.OMITTED] += len(assembled.decisions.omitted) - assembled.summarized
    fates[Fate.REPAIRED] += len(assembled.unfit)
    fates[Fate.EXCLUDED] += len(assembled.pin_effects.excluded)
    fates[Fate.SENT] += _has_system(assembled) + assembled.inferred.count
    return MappingProxyType(dict(fates))


class _RowBuilder:
    """Builds rows by index, and collects the data they need at the first one."""

    def __init__(self, assembled: AssembledPrompt, sizes: Sizes, system: int) -> None:
        self._assembled = assembled
        self._sizes = sizes
        self._system = system  # tokens of the system message as sent, its summary included

    def row(self, index: int) -> Row:
        assembled, original = self._assembled, self._assembled.branch[index]
        message = original if isinstance(original, Message) else Message.from_dict(original)
        before = self._sizes.measure(message, index)[0]
        if not index and _has_system(assembled) and assembled.system is not None:
            # the added text is estimated, the rest measured: so the categories add up
            added = self._sizes.estimate_and_bound(assembled.system)[0] - before
            size = max(0, self._system - added)
            return Row(0, message.id, message.role, Fate.SENT, "", size, self._system)
        if index in assembled.pin_effects.excluded:
            reason = "excluded by the user"
            return Row(index, message.id, message.role, Fate.EXCLUDED, "", before, 0, reason)
        if index in self._unfit:
            reason = ANSWERS_NO_CALL if message.role == "tool" else "empty content"
            return Row(index, message.id, message.role, Fate.REPAIRED, "repair", before, 0, reason)
        layer = assembled.decisions.omitted.get(index)
        if layer is not None:
            is_summarized = layer == SUMMARIZED and assembled.summarized > 0
            fate = Fate.SUMMARIZED if is_summarized else Fate.OMITTED
            return Row(index, message.id, message.role, fate, layer, before, 0, _REASONS[layer])
        if index in assembled.inferred:
            return Row(index, message.id, message.role, Fate.SENT, "", before, before)
        item = self._items[index]
        return Row(index, message.id, message.role, item.fate, item.layer, before, item.tokens, item.reason)

    @cached_property
    def _items(self) -> Mapping[int, PromptItem]:
        return {item.index: item for item in self._assembled.items}

    @cached_property
    def _unfit(self) -> Set[int]:
        return frozenset(self._assembled.unfit)


def _has_system(assembled: AssembledPrompt) -> bool:
    return opens_with_system(assembled.branch) and not (assembled.unfit and assembled.unfit[0] == 0)
