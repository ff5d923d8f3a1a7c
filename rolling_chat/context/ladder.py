"""The one order in which things leave a prompt; oldest first within a step.

0. turns that the summary in force covers, before anything is decided
1. turns beyond the history window (layer 1)
2. stale results: a read of a file that was later written or read again
3. results in history turns, then those between the keep-windows of the current turn (3b)
4. long argument values of calls already answered, in history turns
5. unprotected turns: to the request and its final answer, then out (layer 2)
6. protected turns: their results; long arguments, here and in the current turn; to request and answer
7. iterations of the current turn, never the newest (3c); then protected turns, and the task last
8. results of the newest iteration, then its arguments, levelled: the room that is left is shared

The newest read of a file that was written in the protected turns or later stays until the file is read
again or wholly written: it is not stale, it is masked after all other results and arguments, and its turn
leaves after the other unprotected ones.

A large thing that leaves makes more room than was wanted: what left last comes back where it fits, a
step at a time, a result in part, so that the prompt is filled up to the mark. Stale results stay away.

`trim_strategy = "oldest-first"` is plain: whole turns leave, then iterations, and nothing comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from rolling_chat.context.arguments import shorten_arguments
from rolling_chat.context.budget import Budget
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.files import FileUse, file_uses, is_read, reads_of_edited_files, stale_reads
from rolling_chat.context.holdings import Change, Holdings, Totals, is_answer
from rolling_chat.context.iterations import maskable_results, split_iterations
from rolling_chat.context.pieces import SUMMARISED, Decisions, Piece, Sizes
from rolling_chat.context.report import Fate
from rolling_chat.context.tool_results import level

# What even a result that is cut to nothing keeps: its framing and the line that says so.
LEAST_RESULT_TOKENS = 36
# Below this a call's arguments are not worth cutting, in bound tokens.
_LEAST_ARGUMENTS = 200
_LEVELLING_ATTEMPTS = 8
# A part of a masked result that is smaller, in bound tokens, is not worth coming back.
_LEAST_PART = 400


@dataclass(frozen=True, slots=True)
class Step:
    """Something that may leave.

    `holds_history` says that it makes history smaller, and so is taken for the history's sake too; all
    that do must say so, or a larger window, which does not need them, would drop more in their stead.
    `holds_count` is the step of layer 1, which is taken for the number of messages in the history and for
    nothing else, and no other step is taken for that.
    `is_final` says that it does not come back where it would fit after all.
    """

    take: Callable[[], None]
    holds_history: bool = True
    holds_count: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """Where a trim stops: messages of history, history in estimated tokens, prompt in bound tokens."""

    count: float
    history: float
    window: float

    def are_passed(self, totals: Totals, deferred: float = 0) -> bool:
        """Is there more than this? `deferred` bound tokens are not looked at."""
        is_full = totals.bound - deferred > self.window
        return is_full or totals.history > self.history or totals.in_history > self.count

    def for_step(self, step: Step) -> Marks:
        """Those that `step` is taken for."""
        if step.holds_count:
            return Marks(self.count, math.inf, math.inf)
        return Marks(math.inf, self.history if step.holds_history else math.inf, self.window)


class Ladder:
    """One walk down the ladder, linear in the pieces that it is given."""

    def __init__(
        self,
        turns: Sequence[Sequence[Piece]],
        budget: Budget,
        sizes: Sizes,
        decisions: Decisions,
        *,
        task: int,
        kept: Set[int] = frozenset(),
    ) -> None:
        """`task` is the place of the branch's first request, -1 where it has none; `kept` are places that
        never leave."""
        self._held = Holdings(turns, sizes, decisions, kept)
        self._budget = budget
        self._sizes = sizes
        self._config: ContextConfig = sizes.config
        self._task = task
        self._current = len(turns) - 1
        self._deferred = self._deferrable()
        self._newest_places = {piece.index for piece in self._newest()}

    @property
    def turns(self) -> list[list[Piece]]:
        """What stays of every turn, in order; the current one last, also where nothing is left of it."""
        return self._held.turns

    @property
    def decisions(self) -> Decisions:
        """The decisions given and all that were taken."""
        return self._held.decisions

    def is_over(self, share: float = 1.0, *, spare: int = 0) -> bool:
        """Is the prompt over `share` of what it may take, and `spare` bound tokens? At 1.0: must
        something leave?"""
        return self._marks(share).are_passed(self._held.totals, spare)

    @property
    def fits(self) -> bool:
        """Does the prompt fit the window, however much of it is history?"""
        return self._held.totals.bound <= self._budget.available

    def cover(self, through: int) -> None:
        """Take out the turns that end at or before the place `through`: a summary stands for them.

        The task stays, as its request alone.
        """
        for turn in range(self._current):
            places = [piece.index for piece in self._held.of(turn) if piece.index >= 0]
            if places and places[-1] <= through:
                is_task = self._is_task(turn)
                (self._leave_all_but_task if is_task else self._drop)(turn, SUMMARISED)

    def mask_current_turn(self) -> None:
        """Mask what lies between the keep-windows of the current turn, whether or not it must be; but not
        the newest read of a file that is being edited."""
        between = self._between_windows()
        edited = set[int]()
        if any(is_read(piece) for piece in between):
            since = max(0, self._current - self._config.preserve_recent_turns)
            edited = self._edited_reads(self._file_uses(since))
        for piece in between:
            if piece.index not in edited:
                self._held.mask(self._current, piece)

    def descend(self, *, early: bool = False) -> None:
        """Take decisions until the prompt fits, down to the low-water mark.

        `early` trims though nothing must leave yet: the provider's cache is cold, it costs nothing.
        """
        if self._current < 0:
            return
        full, low, totals = self._marks(1.0), self._marks(self._config.trim_to), self._held.totals
        marks = Marks(
            low.count if early or totals.in_history > full.count else full.count,
            low.history if early or totals.history > full.history else full.history,
            low.window if early or totals.bound > full.window else full.window,
        )
        taken = self._walk(marks, self._deferred)
        if self._is_careful:
            self._fill(taken, marks)
        self._level_newest()
        if not self.fits:
            # the least that the newest results can be is more than their half: all else goes first
            self._walk(full, deferred=0)
            for piece in self._newest():
                self._held.unlevel(piece)
            self._level_newest()

    def _walk(self, marks: Marks, deferred: float) -> list[tuple[Change, ...]]:
        """Take steps until the marks are reached; what each of those did that may come back."""
        held, taken = self._held, list[tuple[Change, ...]]()
        held.changes()
        for step in self._steps():
            if marks.for_step(step).are_passed(held.totals, deferred):
                step.take()
                changes = held.changes()
                if changes and not step.is_final:
                    taken.append(changes)
            elif not marks.are_passed(held.totals, deferred):
                break
        return taken

    def _fill(self, taken: Sequence[Sequence[Change]], marks: Marks) -> None:
        """Give back what left last, a step at a time, wherever it fits below the marks after all.

        Of a turn of the history nothing comes back before what left it later.
        """
        waiting = set[int]()
        for changes in reversed(taken):
            turn = changes[0].turn
            fits = not marks.are_passed(self._held.totals_without(changes), self._deferred)
            if turn not in waiting and fits and self._held.give_back(changes):
                continue
            waiting.update({turn} - {self._current})
            self._give_part(changes, marks)

    def _give_part(self, changes: Sequence[Change], marks: Marks) -> None:
        """Of a result that is masked and would not fit whole, as much as there is room for."""
        change, totals = changes[0], self._held.totals
        if change.after is None or change.after.fate is not Fate.MASKED or not self._held.is_after(change):
            return
        room = marks.window - (totals.bound - self._deferred)
        if change.turn != self._current:
            room = min(room, marks.history - totals.history)
        while room >= _LEAST_PART:
            self._held.give_part(change.turn, change.key, int(room) + change.after.bound)
            if not marks.are_passed(self._held.totals, self._deferred):
                return
            # a cut comes out near its share, not always below it
            room *= 0.9
        self._held.mask(change.turn, change.after)

    def _steps(self) -> Iterator[Step]:
        """Every step that may be taken, in order."""
        current = self._current
        split = max(0, current - self._config.preserve_recent_turns)
        # by what is there at first: which step comes before which must not hang on the room
        uses = self._file_uses(0)
        edited = self._edited_reads(uses)
        early, late = self._parted(range(split), edited)
        unprotected, protected = [*early, *late], range(split, current)
        for turn in (*unprotected, *protected) if self._is_careful else range(current):
            if not self._is_task(turn):
                yield Step(partial(self._drop, turn, "1"), holds_count=True)
        if not self._is_careful:
            yield from self._dropping_steps(range(current))
            yield from self._iteration_steps()
            return
        yield from self._stale_steps(stale_reads(uses) - edited)
        yield from self._masking_steps(range(split), lambda place: place not in edited)
        yield from self._window_steps(lambda place: place not in edited)
        yield from self._argument_steps(range(split))
        for turns in (early, late):
            yield from self._reducing_steps(turns)
            yield from self._dropping_steps(turns)
        yield from self._masking_steps(protected, lambda place: place not in edited)
        yield from self._argument_steps((*protected, current))
        yield from self._masking_steps(protected, lambda place: place in edited)
        yield from self._window_steps(lambda place: place in edited)
        yield from self._reducing_steps(protected)
        yield from self._iteration_steps()
        yield from self._dropping_steps(protected)
        for turn in range(current):
            yield Step(partial(self._drop, turn, "2"))

    def _parted(self, turns: range, edited: Set[int]) -> tuple[list[int], list[int]]:
        """These turns, those apart that hold the newest read of a file that is being edited."""
        late = [turn for turn in turns if any(piece.index in edited for piece in self._held.of(turn))]
        return [turn for turn in turns if turn not in late], late

    def _stale_steps(self, stale: Set[int]) -> Iterator[Step]:
        stale = stale - self._newest_places
        for turn in range(len(self._held)):
            for piece in self._held.of(turn):
                if piece.index in stale:
                    mask = partial(self._held.mask, turn, piece)
                    yield Step(mask, holds_history=turn != self._current, is_final=True)

    def _edited_reads(self, uses: Sequence[FileUse]) -> set[int]:
        return reads_of_edited_files(uses, self._current - self._config.preserve_recent_turns)

    def _file_uses(self, first_turn: int) -> list[FileUse]:
        turns = range(first_turn, len(self._held))
        return file_uses([self._held.of(turn) for turn in turns], first_turn)

    def _masking_steps(self, turns: range, takes: Callable[[int], bool]) -> Iterator[Step]:
        """The results of these turns at the places that it takes, as long as results are masked at all."""
        if not self._masks:
            return
        for turn in turns:
            for piece in self._held.of(turn):
                if piece.message.role == "tool" and takes(piece.index):
                    yield Step(partial(self._held.mask, turn, piece))

    def _window_steps(self, takes: Callable[[int], bool]) -> Iterator[Step]:
        """The results between the keep-windows of the current turn, at the places that it takes."""
        for piece in self._between_windows():
            if takes(piece.index):
                yield Step(partial(self._held.mask, self._current, piece), holds_history=False)

    def _argument_steps(self, turns: Sequence[int]) -> Iterator[Step]:
        for turn in turns:
            for piece in self._held.of(turn):
                if not piece.message.tool_calls or piece.index in self._newest_places:
                    continue
                if piece.bound > _LEAST_ARGUMENTS:
                    shorten = partial(self._held.shorten_arguments, turn, piece)
                    yield Step(shorten, holds_history=turn != self._current)

    def _reducing_steps(self, turns: Sequence[int]) -> Iterator[Step]:
        for turn in turns:
            yield Step(partial(self._reduce, turn))

    def _iteration_steps(self) -> Iterator[Step]:
        for iteration in split_iterations(self._held.of(self._current))[:-1]:
            yield Step(partial(self._held.leave, self._current, iteration, "3c"), holds_history=False)

    def _dropping_steps(self, turns: Sequence[int]) -> Iterator[Step]:
        for turn in turns:
            yield Step(partial(self._leave_all_but_task if self._is_task(turn) else self._drop, turn, "2"))

    def _leave_all_but_task(self, turn: int, layer: str) -> None:
        others = [piece for piece in self._held.of(turn) if piece.index != self._task]
        self._held.leave(turn, others, layer)

    def _reduce(self, turn: int) -> None:
        """Leave the request and the final answer, if there is one."""
        pieces = self._held.of(turn)
        if not pieces or not is_answer(pieces[-1]):
            return
        leaving = [piece for piece in pieces[:-1] if not piece.opens_turn]
        # what was invented for those that leave says nothing by itself
        is_empty = all(piece.index < 0 for piece in (*pieces[:1], pieces[-1]))
        self._held.leave(turn, pieces if is_empty else leaving, "2")

    def _drop(self, turn: int, layer: str) -> None:
        self._held.leave(turn, self._held.of(turn), layer)

    def _level_newest(self) -> None:
        """Share the room that is left among the newest results, then among the newest arguments."""
        self._share_room(self._newest_results, LEAST_RESULT_TOKENS)
        self._share_room(self._newest_calls, _LEAST_ARGUMENTS)

    def _share_room(self, find: Callable[[], list[Piece]], least: int) -> None:
        over = self._held.totals.bound - self._budget.available
        pieces = find() if over > 0 else []
        sizes = [piece.bound for piece in pieces]
        room = sum(sizes)
        # what is cut comes out near its share, not always below it, and a text that its indicator would
        # make longer is not cut at all: look again, with less and less to give
        for attempt in range(_LEVELLING_ATTEMPTS):
            if over <= 0 or room <= 0:
                return
            room = 0 if attempt == _LEVELLING_ATTEMPTS - 1 else room - (over << attempt)
            for piece, share in zip(pieces, level(sizes, room), strict=True):
                if max(share, least) < piece.bound:
                    kept = max(self._sizes.in_plain(share), least)
                    self._held.level(piece, self._share_of(piece, kept))
            over = self._held.totals.bound - self._budget.available

    def _share_of(self, piece: Piece, share: int) -> int:
        """What a result may take, or each call's values of a message, where the message may take `share`."""
        plain = self._sizes.plain
        sizes = [plain.bound_text(call.arguments) for call in piece.message.tool_calls]
        if not sizes:
            return share
        # short calls stay whole, the long get equal parts
        return max(1, *level(sizes, share - (plain.bound_message(piece.message) - sum(sizes))))

    def _deferrable(self) -> float:
        """While others decide, the newest results count for at most half of A together."""
        results = sum(piece.bound for piece in self._newest_results())
        # not rounded, nor are the marks: what is kept must not hang on how two roundings meet
        return max(0, results - max(0, self._budget.available) / 2)

    def _newest(self) -> list[Piece]:
        iterations = split_iterations(self._held.of(self._current))
        return iterations[-1] if iterations else []

    def _newest_results(self) -> list[Piece]:
        return [piece for piece in self._newest() if piece.message.role == "tool" and piece.index >= 0]

    def _newest_calls(self) -> list[Piece]:
        return [
            piece
            for piece in self._newest()
            if piece.index >= 0
            and shorten_arguments(piece.message, 1, self._sizes.plain.bound_text) is not piece.message
        ]

    def _between_windows(self) -> list[Piece]:
        if not self._masks:
            return []
        first, last = self._config.tool_result_keep_first, self._config.tool_result_keep_last
        return maskable_results(self._held.of(self._current), first, last)

    @property
    def _is_careful(self) -> bool:
        return self._config.trim_strategy != "oldest-first"

    @property
    def _masks(self) -> bool:
        return self._config.tool_result_keep_first > 0 or self._config.tool_result_keep_last > 0

    def _is_task(self, turn: int) -> bool:
        """The branch's first request stays longest, unless the oldest simply go first."""
        return self._is_careful and self._task >= 0 and self._held.holds(turn, self._task)

    def _marks(self, share: float) -> Marks:
        cap = self._budget.history_cap
        return Marks(
            int(self._budget.history_count * share),
            cap * share if cap > 0 else math.inf,
            self._budget.available * share,
        )
