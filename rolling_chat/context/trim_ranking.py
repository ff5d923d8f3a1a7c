"""The order in which parts of turns leave by what they are worth, the least first.

A result goes before its call, the calls of a turn before its request and answer: each is worth at least what
depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum

from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.context.relevance import Relevance
from rolling_chat.context.working_prompt import split_iterations
from rolling_chat.messages import has_pictures

# A result that is smaller, in bound tokens, stays and goes with its call: a mask would save nothing.
_MIN_MASKED = 60
# What a token of a request with its answer is worth, whatever it says: these leave by age. A call is worth no
# less: it says what was done, and is dense in names.
_OF_A_TURN = _OF_A_CALL = 0.1


class Leaving(IntEnum):
    """Say what happens to a part; of equal worth, in this order."""

    MASK = 0
    SHORTEN = 1
    OMIT = 2
    DROP = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Name a part of a turn that may leave: a result, the arguments of a call, an iteration, or all of it."""

    worth: float
    leaving: Leaving
    turn: int
    items: tuple[PromptItem, ...]

    @property
    def order(self) -> tuple[float, Leaving, int]:
        """Return the key by which parts are sorted; the oldest first among those of equal worth."""
        return self.worth, self.leaving, self.items[0].index


@dataclass(frozen=True, slots=True)
class Ranking:
    """Find the parts of turns and their worth.

    `edited` are the indexes of results that stay until their turn is dropped, `superseded` of those that left
    before. Results for which `is_maskable` is false leave with their call only. `newest` are the indexes of
    the iteration that the model has not seen. Arguments longer than `long_arguments` bound tokens are
    shortened before their call leaves.
    """

    relevance: Relevance
    edited: Set[int]
    superseded: Set[int]
    newest: Set[int]
    is_maskable: Callable[[PromptItem], bool]
    long_arguments: int

    def parts(self, turn: int, items: Sequence[PromptItem], weight: float) -> Iterator[Part]:
        """Yield the parts of a turn; and the turn itself, the later the larger `weight` is, never for 0."""
        most, inside = 0.0, set[int]()
        for iteration in split_iterations(items):
            inside.update(item.index for item in iteration)
            if iteration[0].index in self.newest:
                continue
            parts = list(self._of_iteration(turn, iteration))
            most = max([most, *(part.worth for part in parts)])
            yield from parts
        rest = [item for item in items if item.index not in inside]
        for item in rest:
            if has_pictures(item.message) and self.is_maskable(item):
                yield Part(self.relevance.worth([item]), Leaving.MASK, turn, (item,))
        if weight and items:
            own = self.relevance.worth_at_its_age(rest or items, weight * _OF_A_TURN)
            yield Part(max(most, own), Leaving.DROP, turn, tuple(items))

    def _of_iteration(self, turn: int, iteration: Sequence[PromptItem]) -> Iterator[Part]:
        own, most, is_edited = [iteration[0]], 0.0, False
        for result in iteration[1:]:
            if result.index in self.edited:
                is_edited = True
            elif result.index in self.superseded:
                continue
            elif result.bound >= _MIN_MASKED and self.is_maskable(result):
                part = Part(self.relevance.worth([result]), Leaving.MASK, turn, (result,))
                most = max(most, part.worth)
                yield part
            else:
                own.append(result)
        worth, call = self.relevance.worth(own, _OF_A_CALL), iteration[0]
        if call.bound > self.long_arguments:
            yield Part(worth, Leaving.SHORTEN, turn, (call,))
        if not is_edited:
            yield Part(max(most, worth), Leaving.OMIT, turn, tuple(iteration))
