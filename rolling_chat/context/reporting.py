"""Drawing the prompt report from a draft."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Set
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType

from rolling_chat.context.budget import Budget
from rolling_chat.context.draft import Draft
from rolling_chat.context.pieces import SUMMARISED, Piece, Sizes
from rolling_chat.context.report import Fate, PromptReport, Row, Rows
from rolling_chat.context.turns import ANSWERS_NO_CALL, opens_with_system
from rolling_chat.messages import Message

_PACE_TURNS = 5  # turns that the pace is taken from: enough to even out, few enough to follow a change

_REASONS = {
    "1": "beyond the history window",
    "2": "older than the history budget holds",
    "3c": "an older iteration of its turn",
    SUMMARISED: "the summary stands for it",
}


def draw_report(draft: Draft, sizes: Sizes) -> PromptReport:
    """The division of the window and, once it is asked for, a row for every message of the branch."""
    budget = sizes.budget(draft.system)
    cap = budget.history_cap if sizes.config.enabled else 0
    fixed = sizes.fixed(draft.system)
    system, tools = fixed.system, fixed.tools
    summary = min(system, sizes.estimate.count_text(draft.summary.block)) if draft.summary else 0
    history = sum(piece.tokens for piece in draft.history)
    current = sum(piece.tokens for piece in draft.current)
    bound = budget.system + budget.tools + sum(piece.bound for piece in draft.pieces)
    count = system + tools + history + current
    at_window, pace = _at_window(budget, count, bound, sizes), _pace(draft, sizes)
    until_full = at_window - count
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
        within_budget=bound <= budget.room,
        history_budget=max(0, budget.history),
        trim_at=min(at_window, count - history + cap) if cap > 0 else at_window,
        floor=_floor(draft, budget),
        rows=Rows(len(draft.given), _Drawing(draft, sizes, system).row),
        fates=_fates(draft),
        trimmed=draft.decisions != draft.before,
        exact=sizes.confirmed is not None,
        band=max(0, bound - count) / count if count else 0.0,
        turns=sum(piece.opens_turn for piece in draft.pieces),
        until_trim=min(until_full, _until_cap(cap, history + current, pace)) if cap > 0 else until_full,
        pace=pace,
        stand_ins=sum(piece.tokens for piece in takewhile(_is_invented, reversed(draft.current))),
        inserted=sum(piece.tokens for piece in draft.pieces if _is_invented(piece)),
    )


def _at_window(budget: Budget, count: int, bound: int, sizes: Sizes) -> int:
    """The prompt's size, in estimated tokens, at which the window is full."""
    factor = sizes.bound.family.factor * sizes.config.calibration.estimate
    return max(0, count + int((budget.room - bound) * factor / sizes.bound.prior))


def _is_invented(piece: Piece) -> bool:
    return piece.index < 0


def _until_cap(cap: int, said: int, pace: int) -> int:
    """How much may still be said before history is over its cap: that is looked at when a turn begins, and
    so the one that goes over it still goes as it is."""
    return cap - said + (pace if said <= cap else 0)


def _pace(draft: Draft, sizes: Sizes) -> int:
    """How many tokens a turn brings: the mean of the newest ones as they came in, 0 where none is whole."""
    grown, whole, seen, turn = 0, 0, 0, list[Piece]()
    end = next((piece.index for piece in draft.current if piece.index >= 0), len(draft.given))
    for piece in reversed(draft.history):
        turn.append(piece)
        if not piece.opens_turn:
            continue
        if sum(one.index >= 0 for one in turn) == end - piece.index:
            grown += sum(_as_it_came(one, sizes) for one in turn)
            whole += 1
        seen, end, turn = seen + 1, piece.index, []
        if seen == _PACE_TURNS:
            break
    return math.ceil(grown / whole) if whole else 0


def _as_it_came(piece: Piece, sizes: Sizes) -> int:
    """The tokens of a message before anything was decided of it; the cap on results is no decision."""
    if piece.layer not in {"3b", "levelled", "arguments"}:
        return piece.tokens
    before = sizes.measure(piece.source, piece.index)[0]
    return min(before, sizes.config.max_tool_result_tokens) if piece.message.role == "tool" else before


def _floor(draft: Draft, budget: Budget) -> int:
    user = next((piece for piece in draft.current if piece.message.role == "user"), None)
    pinned = (piece.bound for piece in draft.pieces if piece.index in draft.held.kept and piece is not user)
    fixed = budget.system + budget.tools + budget.reserve + budget.margin
    return fixed + sum(pinned) + (user.bound if user else 0)


def _fates(draft: Draft) -> Mapping[Fate, int]:
    fates = Counter(piece.fate for piece in draft.pieces if piece.index >= 0)
    fates[Fate.SUMMARISED] += draft.summarised
    fates[Fate.OMITTED] += len(draft.decisions.omitted) - draft.summarised
    fates[Fate.REPAIRED] += len(draft.unfit)
    fates[Fate.EXCLUDED] += len(draft.held.left_out)
    fates[Fate.SENT] += _has_system(draft)
    return MappingProxyType(dict(fates))


class _Drawing:
    """Draws the row of a place; what it looks up is gathered for the first of them."""

    def __init__(self, draft: Draft, sizes: Sizes, system: int) -> None:
        self._draft = draft
        self._sizes = sizes
        self._system = system  # tokens of the system message as sent, its summary included

    def row(self, place: int) -> Row:
        draft, given = self._draft, self._draft.given[place]
        message = given if isinstance(given, Message) else Message.from_dict(given)
        before = self._sizes.measure(message, place)[0]
        if not place and _has_system(draft) and draft.system is not None:
            # what the pipeline added is estimated, the rest measured: so the categories agree
            added = self._sizes.estimated(draft.system)[0] - before
            size = max(0, self._system - added)
            return Row(0, message.id, message.role, Fate.SENT, "", size, self._system)
        if place in draft.held.left_out:
            reason = "excluded by the user"
            return Row(place, message.id, message.role, Fate.EXCLUDED, "", before, 0, reason)
        if place in self._unfit:
            reason = ANSWERS_NO_CALL if message.role == "tool" else "empty content"
            return Row(place, message.id, message.role, Fate.REPAIRED, "repair", before, 0, reason)
        layer = draft.decisions.omitted.get(place)
        if layer is not None:
            is_told = layer == SUMMARISED and draft.summarised > 0
            fate = Fate.SUMMARISED if is_told else Fate.OMITTED
            return Row(place, message.id, message.role, fate, layer, before, 0, _REASONS[layer])
        piece = self._pieces[place]
        return Row(
            place, message.id, message.role, piece.fate, piece.layer, before, piece.tokens, piece.reason
        )

    @cached_property
    def _pieces(self) -> Mapping[int, Piece]:
        return {piece.index: piece for piece in self._draft.pieces}

    @cached_property
    def _unfit(self) -> Set[int]:
        return frozenset(self._draft.unfit)


def _has_system(draft: Draft) -> bool:
    return opens_with_system(draft.given) and not (draft.unfit and draft.unfit[0] == 0)
