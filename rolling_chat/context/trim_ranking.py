"""Rank the parts of turns by worth, to remove the least valuable first.

A result is removed before its call, and the calls of a turn before its request and answer: each part is worth
at least as much as the parts that depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum

from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.context.relevance import Relevance
from rolling_chat.context.working_prompt import split_iterations
from rolling_chat.messages import has_pictures

# In bound tokens; a smaller result is dropped with its call, because masking it would save nothing.
_MIN_MASKED = 60
# The worth of a token in a request with its answer, whatever the content: these are dropped by age. A call is
# worth the same: it shows what was done, and is dense in names.
_TURN_WORTH = _CALL_WORTH = 0.1


class Removal(IntEnum):
    """How a part is removed; parts of equal worth are removed in this order."""

    MASK = 0
    SHORTEN = 1
    OMIT = 2
    DROP = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A removable part of a turn: a result, the arguments of a call, an iteration, or the whole turn."""

    worth: float
    removal: Removal
    turn: int
    items: tuple[PromptItem, ...]

    @property
    def order(self) -> tuple[float, Removal, int]:
        """The sort key; among parts of equal worth, the oldest come first."""
        return self.worth, self.removal, self.items[0].index


@dataclass(frozen=True, slots=True)
class Ranking:
    """Finds the parts of turns and rates their worth.

    `edited` are the indexes of results that are kept until their turn is dropped, `superseded` those of
    results removed earlier. Results that are not `is_maskable` are removed only with their call. `newest` are
    the indexes of the iteration that the model has not seen yet. Arguments longer than `long_arguments` bound
    tokens are shortened before their call is omitted.
    """

    relevance: Relevance
    edited: Set[int]
    superseded: Set[int]
    newest: Set[int]
    is_maskable: Callable[[PromptItem], bool]
    long_arguments: int

    def parts(self, turn: int, items: Sequence[PromptItem], weight: float) -> Iterator[Part]:
        """Yield the parts of a turn, and the turn itself; a larger `weight` keeps it longer, 0 always."""
        max_worth, inside = 0.0, set[int]()
        for iteration in split_iterations(items):
            inside.update(item.index for item in iteration)
            if iteration[0].index in self.newest:
                continue
            parts = list(self._iteration_parts(turn, iteration))
            max_worth = max([max_worth, *(part.worth for part in parts)])
            yield from parts
        rest = [item for item in items if item.index not in inside]
        for item in rest:
            if has_pictures(item.message) and self.is_maskable(item):
                yield Part(self.relevance.worth([item]), Removal.MASK, turn, (item,))
        if weight and items:
            own = self.relevance.aged_worth(rest or items, weight * _TURN_WORTH)
            yield Part(max(max_worth, own), Removal.DROP, turn, tuple(items))

    def _iteration_parts(self, turn: int, iteration: Sequence[PromptItem]) -> Iterator[Part]:
        own, max_worth, is_edited = [iteration[0]], 0.0, False
        for result in iteration[1:]:
            if result.index in self.edited:
                is_edited = True
            elif result.index in self.superseded:
                continue
            elif result.bound >= _MIN_MASKED and self.is_maskable(result):
                part = Part(self.relevance.worth([result]), Removal.MASK, turn, (result,))
                max_worth = max(max_worth, part.worth)
                yield part
            else:
                own.append(result)
        worth, call = self.relevance.worth(own, _CALL_WORTH), iteration[0]
        if call.bound > self.long_arguments:
            yield Part(worth, Removal.SHORTEN, turn, (call,))
        if not is_edited:
            yield Part(max(max_worth, worth), Removal.OMIT, turn, tuple(iteration))
