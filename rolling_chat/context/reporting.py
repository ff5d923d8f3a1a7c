"""Drawing the prompt report from a draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from rolling_chat.context.budget import Budget
from rolling_chat.context.draft import Draft
from rolling_chat.context.pieces import SUMMARISED, Piece, Sizes
from rolling_chat.context.report import Fate, PromptReport, Row, Rows
from rolling_chat.context.turns import ANSWERS_NO_CALL, opens_with_system
from rolling_chat.messages import Message

_REASONS = {
    "1": "beyond the history window",
    "2": "older than the history budget holds",
    "3c": "an older iteration of its turn",
    SUMMARISED: "the summary stands for it",
}


def draw_report(draft: Draft, sizes: Sizes) -> PromptReport:
    """The division of the window and, once it is asked for, a row for every message of the branch."""
    budget = sizes.budget(draft.system)
    fixed = sizes.fixed(draft.system)
    system, tools = fixed.system, fixed.tools
    summary = min(system, sizes.estimate.count_text(draft.summary.block)) if draft.summary else 0
    history = sum(piece.tokens for piece in draft.history)
    current = sum(piece.tokens for piece in draft.current)
    bound = budget.system + budget.tools + sum(piece.bound for piece in draft.pieces)
    count = system + tools + history + current
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
        trim_at=_trim_at(budget, count, bound, history, sizes),
        floor=_floor(draft, budget),
        rows=Rows(lambda: _rows(draft, sizes)),
        fates=_fates(draft),
        trimmed=draft.decisions != draft.before,
        exact=sizes.confirmed is not None,
        band=max(0, bound - count) / count if count else 0.0,
        turns=sum(piece.opens_turn for piece in draft.pieces),
    )


def _trim_at(budget: Budget, count: int, bound: int, history: int, sizes: Sizes) -> int:
    """The prompt's size, in estimated tokens, at which something must leave."""
    factor = sizes.bound.family.factor * sizes.config.calibration.estimate
    at_window = max(0, count + int((budget.room - bound) * factor / sizes.bound.prior))
    if not sizes.config.enabled or budget.history_cap <= 0:
        return at_window
    return min(at_window, count - history + budget.history_cap)


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


def _rows(draft: Draft, sizes: Sizes) -> Iterator[Row]:
    pieces = {piece.index: piece for piece in draft.pieces}
    unfit = set(draft.unfit)
    for index, given in enumerate(draft.given):
        message = given if isinstance(given, Message) else Message.from_dict(given)
        before = sizes.measure(message)[0]
        if not index and _has_system(draft) and draft.system is not None:
            after = sizes.estimate.count_message(draft.system)
            yield Row(0, message.id, message.role, Fate.SENT, "", before, after)
        elif index in draft.held.left_out:
            reason = "excluded by the user"
            yield Row(index, message.id, message.role, Fate.EXCLUDED, "", before, 0, reason)
        elif index in unfit:
            reason = ANSWERS_NO_CALL if message.role == "tool" else "empty content"
            yield Row(index, message.id, message.role, Fate.REPAIRED, "repair", before, 0, reason)
        elif (layer := draft.decisions.omitted.get(index)) is not None:
            is_told = layer == SUMMARISED and draft.summarised > 0
            fate = Fate.SUMMARISED if is_told else Fate.OMITTED
            yield Row(index, message.id, message.role, fate, layer, before, 0, _REASONS[layer])
        else:
            yield _row(pieces[index], message, before)


def _row(piece: Piece, message: Message, before: int) -> Row:
    return Row(
        piece.index, message.id, message.role, piece.fate, piece.layer, before, piece.tokens, piece.reason
    )


def _has_system(draft: Draft) -> bool:
    return opens_with_system(draft.given) and not (draft.unfit and draft.unfit[0] == 0)
