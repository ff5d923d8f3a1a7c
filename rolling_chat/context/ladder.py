"""The one order in which things leave a prompt; oldest first within a step.

1. turns beyond the history window (layer 1)
2. stale results: a read of a file that was later written or read again
3. results in history turns, then those between the keep-windows of the current turn (3b)
4. long argument values of calls already answered
5. unprotected turns: to the request and its final answer, then out (layer 2)
6. iterations of the current turn, never the newest (3c)
7. protected turns, by the same steps, and the task last
8. results of the newest iteration, then its arguments, levelled: the room that is left is shared

`trim_strategy = "oldest-first"` leaves out steps 2 to 4 and the priorities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from rolling_chat.context.arguments import shorten_arguments
from rolling_chat.context.budget import Budget
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.files import file_uses, reads_of_edited_files, stale_reads
from rolling_chat.context.iterations import maskable_results, split_iterations
from rolling_chat.context.pieces import Decisions, Piece, Sizes
from rolling_chat.context.tool_results import level

# What even a result that is cut to nothing keeps: its framing and the line that says so.
LEAST_RESULT_TOKENS = 40
# Below this a call's arguments are not worth cutting, in bound tokens.
_LEAST_ARGUMENTS = 200
_LEVELLING_ATTEMPTS = 4

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Marks:
    """Where a trim stops: messages of history, history in estimated tokens, prompt in bound tokens."""

    count: int
    history: int
    window: int


class Ladder:
    """One walk down the ladder over turns of pieces, the last of which is the current one.

    Totals are kept as things leave, so a walk is linear in the pieces that it is given.
    """

    def __init__(
        self,
        turns: Sequence[Sequence[Piece]],
        budget: Budget,
        sizes: Sizes,
        decisions: Decisions,
        task: int,
    ) -> None:
        """`task` is the place of the branch's first request, -1 where it has none."""
        # by place, so that one piece is found, replaced or taken out without a look at the others
        self._turns = [{_key(piece): piece for piece in turn} for turn in turns]
        self._budget = budget
        self._sizes = sizes
        self._config: ContextConfig = sizes.config
        self._masked = set(decisions.masked)
        self._arguments = set(decisions.arguments)
        self._levels = dict(decisions.levels)
        self._omitted: list[tuple[int, str]] = []
        self._before = decisions
        self._task = task
        self._current = len(self._turns) - 1
        self._bound = sum(piece.bound for turn in turns for piece in turn)
        self._history = sum(piece.tokens for turn in turns[:-1] for piece in turn)
        self._count = sum(map(len, turns))
        self._in_history = sum(map(len, turns[:-1]))
        self._deferred = self._deferrable()
        self._newest_places = {piece.index for piece in self._newest()}

    @property
    def turns(self) -> list[list[Piece]]:
        """What stays of every turn, in order; the current one last, also where nothing is left of it."""
        return [list(turn.values()) for turn in self._turns[:-1] if turn] + [
            list(turn.values()) for turn in self._turns[-1:]
        ]

    @property
    def decisions(self) -> Decisions:
        """The decisions given and all that were taken; those on messages that left are forgotten."""
        omitted = self._before.omitted.add(self._omitted)
        return Decisions(
            omitted,
            frozenset(place for place in self._masked if place not in omitted),
            frozenset(place for place in self._arguments if place not in omitted),
            MappingProxyType({place: cap for place, cap in self._levels.items() if place not in omitted}),
        )

    def is_over(self, share: float = 1.0) -> bool:
        """Is the prompt over `share` of what it may take? At 1.0: must something leave?"""
        return self._is_over(self._marks(share), deferred=0)

    def mask_current_turn(self) -> None:
        """Mask what lies between the keep-windows of the current turn, whether or not it must be."""
        for piece in self._between_windows():
            self._mask(self._current, piece)

    def descend(self, *, early: bool = False) -> None:
        """Take decisions until the prompt fits, down to the low-water mark.

        `early` trims though nothing must leave yet: the provider's cache is cold, it costs nothing.
        """
        if not self._turns:
            return
        full = self._marks(1.0)
        low = self._marks(self._config.trim_to)
        marks = Marks(
            low.count if early or self._count > full.count else full.count,
            low.history if early or self._history > full.history else full.history,
            low.window if early or self._bound > full.window else full.window,
        )
        self._walk(marks, self._deferred)
        self._level_newest()
        if self._bound > self._budget.available:
            # the least that the newest results can be is more than their half: all else goes first
            self._walk(full, deferred=0)
            self._level_newest()

    def _walk(self, marks: Marks, deferred: int) -> None:
        for holds_history, step in self._steps(marks):
            wanted = marks if holds_history else replace(marks, count=self._count, history=self._history)
            if self._is_over(wanted, deferred):
                step()
            elif not self._is_over(marks, deferred):
                break

    def _steps(self, marks: Marks) -> Iterator[tuple[bool, Step]]:
        """Every step that may be taken, in order, and whether it is taken for the history's sake too."""
        split = max(0, self._current - self._config.preserve_recent_turns)
        unprotected, protected = range(split), range(split, self._current)
        for turn in range(self._current):
            if self._count > marks.count and not self._is_task(turn):
                yield True, partial(self._drop, turn, "1")
        careful = self._config.trim_strategy != "oldest-first"
        if careful:
            yield from self._gentle_steps(unprotected, keep_edited=True)
            for piece in self._between_windows():
                yield True, partial(self._mask, self._current, piece)
            yield from self._argument_steps((*unprotected, self._current))
            yield from self._reducing_steps(unprotected)
        yield from self._dropping_steps(unprotected)
        for iteration in split_iterations(self._pieces(self._current))[:-1]:
            yield False, partial(self._leave, self._current, iteration, "3c")
        if careful:
            yield from self._gentle_steps(protected, keep_edited=False)
            yield from self._argument_steps(protected)
            yield from self._reducing_steps(protected)
        yield from self._dropping_steps(protected)
        for turn in range(self._current):
            yield True, partial(self._drop, turn, "2")

    def _gentle_steps(self, turns: range, *, keep_edited: bool) -> Iterator[tuple[bool, Step]]:
        """Stale results of these turns (and of the current one), then all results of these turns."""
        uses = file_uses([self._pieces(turn) for turn in range(len(self._turns))])
        edited = reads_of_edited_files(uses, self._current - self._config.preserve_recent_turns)
        stale = stale_reads(uses) - self._newest_places
        for turn in (*turns, self._current):
            for piece in self._pieces(turn):
                if piece.index in stale:
                    yield True, partial(self._mask, turn, piece)
        if not self._masks:
            return
        for turn in turns:
            for piece in self._pieces(turn):
                if piece.message.role == "tool" and not (keep_edited and piece.index in edited):
                    yield True, partial(self._mask, turn, piece)

    def _argument_steps(self, turns: Sequence[int]) -> Iterator[tuple[bool, Step]]:
        for turn in turns:
            for piece in self._pieces(turn):
                if piece.message.tool_calls and piece.index not in self._newest_places:
                    yield False, partial(self._shorten, turn, piece)

    def _reducing_steps(self, turns: range) -> Iterator[tuple[bool, Step]]:
        for turn in turns:
            yield True, partial(self._reduce, turn)

    def _dropping_steps(self, turns: range) -> Iterator[tuple[bool, Step]]:
        for turn in turns:
            if not self._is_task(turn):
                yield True, partial(self._drop, turn, "2")

    def _mask(self, turn: int, piece: Piece) -> None:
        if piece.index >= 0 and piece.index not in self._masked:
            self._masked.add(piece.index)
            self._reshape(turn, piece)

    def _shorten(self, turn: int, piece: Piece) -> None:
        if piece.index < 0 or piece.bound <= _LEAST_ARGUMENTS:
            return
        # what was levelled while it was the newest has its share no longer
        was_levelled = self._levels.pop(piece.index, None) is not None
        if was_levelled or piece.index not in self._arguments:
            self._arguments.add(piece.index)
            self._reshape(turn, piece)

    def _reduce(self, turn: int) -> None:
        """Leave the request and the final answer, if there is one."""
        pieces = self._pieces(turn)
        if not pieces or not _is_answer(pieces[-1]):
            return
        leaving = [piece for piece in pieces[:-1] if not piece.opens_turn]
        # what was invented for those that leave says nothing by itself
        is_empty = all(piece.index < 0 for piece in (*pieces[:1], pieces[-1]))
        self._leave(turn, pieces if is_empty else leaving, "2")

    def _drop(self, turn: int, layer: str) -> None:
        self._leave(turn, self._pieces(turn), layer)

    def _leave(self, turn: int, leaving: Sequence[Piece], layer: str) -> None:
        pieces = self._turns[turn]
        for leaver in leaving:
            # it may have been shortened since the step was planned, or have left
            piece = pieces.pop(_key(leaver), None)
            if piece is None:
                continue
            self._take(turn, -piece.tokens, -piece.bound)
            self._count -= 1
            self._in_history -= turn != self._current
            if piece.index >= 0:
                self._omitted.append((piece.index, layer))

    def _reshape(self, turn: int, piece: Piece) -> None:
        old = self._turns[turn].get(piece.index)
        if old is None:
            return
        shaped = self._sizes.reshape(old, self._working())
        self._turns[turn][piece.index] = shaped
        self._take(turn, shaped.tokens - old.tokens, shaped.bound - old.bound)

    def _take(self, turn: int, tokens: int, bound: int) -> None:
        self._bound += bound
        if turn != self._current:
            self._history += tokens

    def _working(self) -> Decisions:
        """The decisions so far, as they stand and for the moment: nothing is copied."""
        return Decisions(self._before.omitted, self._masked, self._arguments, self._levels)

    def _level_newest(self) -> None:
        """Share the room that is left among the newest results, then among the newest arguments."""
        self._share_room(self._newest_results, LEAST_RESULT_TOKENS)
        self._share_room(self._newest_calls, _LEAST_ARGUMENTS)

    def _share_room(self, find: Callable[[], list[Piece]], least: int) -> None:
        # what is cut comes out near its share, not always below it: look again, with less to give
        for attempt in range(_LEVELLING_ATTEMPTS):
            over = self._bound - self._budget.available
            pieces = find() if over > 0 else []
            if not pieces:
                return
            sizes = [piece.bound for piece in pieces]
            room = sum(sizes) - over - attempt * len(pieces)
            is_last = attempt == _LEVELLING_ATTEMPTS - 1
            shares = [0] * len(pieces) if is_last else level(sizes, room)
            for piece, share in zip(pieces, shares, strict=True):
                if share < piece.bound:
                    self._give(piece, max(share, least))

    def _give(self, piece: Piece, share: int) -> None:
        if piece.message.tool_calls:
            self._arguments.add(piece.index)
            share = max(
                1,
                (share - (piece.bound - self._argument_bound(piece)))
                // max(1, len(piece.message.tool_calls)),
            )
        self._levels[piece.index] = share
        self._reshape(self._current, piece)

    def _argument_bound(self, piece: Piece) -> int:
        return sum(self._sizes.bound.bound_text(call.arguments) for call in piece.message.tool_calls)

    def _deferrable(self) -> int:
        """While others decide, the newest results count for at most half of A together."""
        results = sum(piece.bound for piece in self._newest_results())
        return max(0, results - max(0, self._budget.available) // 2)

    def _newest(self) -> list[Piece]:
        iterations = split_iterations(self._pieces(self._current))
        return iterations[-1] if iterations else []

    def _newest_results(self) -> list[Piece]:
        return [piece for piece in self._newest() if piece.message.role == "tool" and piece.index >= 0]

    def _newest_calls(self) -> list[Piece]:
        return [
            piece
            for piece in self._newest()
            if piece.index >= 0
            and shorten_arguments(piece.message, 1, self._sizes.bound.bound_text) is not piece.message
        ]

    def _between_windows(self) -> list[Piece]:
        if not self._masks:
            return []
        first, last = self._config.tool_result_keep_first, self._config.tool_result_keep_last
        return maskable_results(self._pieces(self._current), first, last)

    def _pieces(self, turn: int) -> list[Piece]:
        return list(self._turns[turn].values()) if self._turns else []

    @property
    def _masks(self) -> bool:
        return self._config.tool_result_keep_first > 0 or self._config.tool_result_keep_last > 0

    def _is_task(self, turn: int) -> bool:
        """The branch's first request stays longest, unless the oldest simply go first."""
        if self._config.trim_strategy == "oldest-first" or not self._turns[turn]:
            return False
        return self._task >= 0 and self._task in self._turns[turn]

    def _marks(self, share: float) -> Marks:
        cap = self._budget.history_cap
        return Marks(
            int(self._budget.history_count * share),
            int(cap * share) if cap > 0 else self._budget.window,
            int(self._budget.available * share),
        )

    def _is_over(self, marks: Marks, deferred: int) -> bool:
        if self._bound - deferred > marks.window:
            return True
        return self._in_history > 0 and (self._history > marks.history or self._count > marks.count)


def _key(piece: Piece) -> int:
    """The place of a piece; for an invented one, which stands as it was made, something of its own."""
    return piece.index if piece.index >= 0 else -id(piece)


def _is_answer(piece: Piece) -> bool:
    return piece.message.role == "assistant" and not piece.message.tool_calls
