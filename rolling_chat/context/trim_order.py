"""The order in which messages are trimmed from a prompt.

0. turns that the active summary covers, before any other decision
1. turns beyond the history window (layer 1)
2. superseded results, whatever their age, by the rules in `superseded`
3. in unprotected turns: results and pictures (3b), long arguments of answered calls, calls with their
results, whole turns (layer 2), in order of worth, the least first (see below)
4. in protected turns and the current turn: results (in the current turn only those between the keep-windows),
long arguments, calls with their results (3c, never the newest), protected turns; again the least worth first,
but the task before the first of these turns
5. results spared because a file is being edited; then protected turns, reduced to the request and its final
answer; iterations of the current turn (3c); protected turns as a whole
6. results of the newest iteration, then its arguments, leveled: they share the room that is left

A token is worth more the more names its message shares with the newest request and the newest answers, and
less the older it is: see `relevance`. A result is trimmed before its call, calls before their turn: see
`trim_ranking`.

The newest read of a file that was changed in the protected turns or later is kept until the file is read
again or completely rewritten: it is not superseded, it is masked after all other results and arguments, and
its turn is dropped after the other unprotected ones.

Omitting a large item may free more room than needed. Items omitted last are then restored if they fit, one
step at a time, a result or a text partially if necessary, so that the prompt is filled up to the mark.
Superseded results are not restored.

`trim_strategy = "age"` replaces steps 3 and 4 with an order by age: results of unprotected turns, results
between the keep-windows of the current turn, long arguments, turns (first reduced to the request and its
final answer, then dropped), results and arguments of protected turns. `"oldest-first"` is simpler: it drops
whole turns, then iterations, and restores nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial

from rolling_chat.context.budget import Budget
from rolling_chat.context.call_arguments import shorten_arguments
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.leveling import level
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem, Sizes
from rolling_chat.context.relevance import Relevance
from rolling_chat.context.summary_text import Summary
from rolling_chat.context.superseded import reads_of_edited_files, superseded
from rolling_chat.context.surviving import is_answer
from rolling_chat.context.tool_uses import ToolUse, is_read, tool_uses
from rolling_chat.context.trim_ranking import Part, Ranking, Removal
from rolling_chat.context.trim_restoring import Restorer
from rolling_chat.context.trim_steps import TrimStep, TrimTargets
from rolling_chat.context.working_prompt import (
    Change,
    WorkingPrompt,
    maskable_results,
    split_iterations,
)
from rolling_chat.messages import has_pictures

# Tokens that even a result cut to nothing keeps: its framing and the line about the cut.
MIN_RESULT_TOKENS = 36
# In bound tokens; shorter arguments are not worth cutting.
_MIN_ARGUMENT_TOKENS = 200
_LEVELLING_ATTEMPTS = 8
# The factor by which request and answer of a protected turn are worth more than others of the same age.
_PROTECTED_FACTOR = 3.0


class Trimmer:
    """Trims one prompt in the trim order, in time linear in its items."""

    def __init__(
        self,
        turns: Sequence[Sequence[PromptItem]],
        budget: Budget,
        sizes: Sizes,
        decisions: Decisions,
        *,
        task: int,
        pinned: Set[int] = frozenset(),
    ) -> None:
        """`task` is the index of the branch's first request, -1 if none; `pinned` ones are never omitted."""
        self._working = WorkingPrompt(turns, sizes, decisions, pinned)
        self._budget = budget
        self._sizes = sizes
        self._config: ContextConfig = sizes.config
        self._task = task
        self._current = len(turns) - 1
        self._deferred = self._deferred_tokens()
        self._newest_indexes = {item.index for item in self._newest()}
        self.unused = 0.0
        """How far below its targets the last trim ended, in bound tokens."""

    @property
    def turns(self) -> list[list[PromptItem]]:
        """The remaining items of every turn, in order; the current turn is last, even if empty."""
        return self._working.turns

    @property
    def decisions(self) -> Decisions:
        """The given decisions and all that were added."""
        return self._working.decisions

    def is_over(self, share: float = 1.0, *, spare: int = 0) -> bool:
        """Return whether the prompt exceeds `share` of its limits by more than `spare` bound tokens."""
        return self._targets(share).are_exceeded(self._working.totals, spare)

    @property
    def size(self) -> int:
        """The size of the remaining items, in bound tokens."""
        return self._working.totals.bound

    @property
    def fits(self) -> bool:
        """Whether the prompt fits the window, regardless of the limit on history."""
        return self._working.totals.bound <= self._budget.available

    def cover(self, summary: Summary) -> None:
        """Omit the turns that a summary replaces, except for the request that is the task."""
        for turn in range(self._current):
            indexes = [item.index for item in self._working.of(turn) if item.index >= 0]
            if indexes and summary.covers(indexes[0], indexes[-1]):
                is_task = self._is_task(turn)
                (self._omit_all_but_task if is_task else self._drop)(turn, SUMMARIZED)

    def mask_current_turn(self) -> None:
        """Mask results between the keep-windows of the current turn, even if everything would fit.

        The newest read of a file that is being edited is spared."""
        between = self._between_windows()
        edited = set[int]()
        if any(is_read(item) for item in between):
            since = max(0, self._current - self._config.preserve_recent_turns)
            edited = self._edited_reads(self._file_uses(since))
        for item in between:
            if item.index not in edited:
                self._working.mask(self._current, item)

    def trim(self, *, early: bool = False) -> None:
        """Make decisions until the prompt fits, down to the low-water mark.

        With `early`, trim before anything has to be omitted: the provider's cache is cold, so it costs
        nothing.
        """
        if self._current < 0:
            return
        full, low, totals = self._targets(1.0), self._targets(self._config.trim_to), self._working.totals
        targets = TrimTargets(
            low.count if early or totals.in_history > full.count else full.count,
            low.history if early or totals.history > full.history else full.history,
            low.window if early or totals.bound > full.window else full.window,
        )
        taken = self._walk(targets, self._deferred)
        restoring = Restorer(self._working, targets, self._deferred)
        if self._has_priorities:
            restoring.restore(taken)
        self.unused = restoring.room
        self._level_newest()
        if not self.fits:
            # the newest results need more than half of the room even at their minimum: trim all else first
            self._walk(full, deferred=0)
            for item in self._newest():
                self._working.unlevel(item)
            self._level_newest()

    def _walk(self, targets: TrimTargets, deferred: float) -> list[tuple[Change, ...]]:
        """Take steps until the targets are met; return the changes of each step that may be restored."""
        working, taken = self._working, list[tuple[Change, ...]]()
        working.take_changes()
        for step in self._steps():
            if targets.for_step(step).are_exceeded(working.totals, deferred):
                step.take()
                changes = working.take_changes()
                if changes and not step.is_final:
                    taken.append(changes)
            elif not targets.are_exceeded(working.totals, deferred):
                break
        return taken

    def _steps(self) -> Iterator[TrimStep]:
        """Yield all possible steps, in order."""
        current = self._current
        split = max(0, current - self._config.preserve_recent_turns)
        # by the state before the trim: the order of steps must not depend on the room
        uses = self._file_uses(0)
        edited = self._edited_reads(uses)
        early, late = self._split_by_edited(range(split), edited)
        unprotected, protected = [*early, *late], range(split, current)
        for turn in (*unprotected, *protected) if self._has_priorities else range(current):
            if not self._is_task(turn):
                yield TrimStep(partial(self._drop, turn, "1"), for_count=True)
        if not self._has_priorities:
            yield from self._dropping_steps(range(current))
            yield from self._iteration_steps()
            return
        reasons = superseded(uses)
        if self._config.trim_strategy == "age":
            steps = self._steps_by_age(early, late, protected, edited)
        else:
            steps = iter(list(self._steps_by_worth(early, late, protected, edited, reasons.keys())))
        yield from self._superseded_steps(reasons, edited)
        yield from steps
        yield from self._masking_steps(protected, lambda index: index in edited)
        yield from self._window_steps(lambda index: index in edited)
        yield from self._task_steps(range(split))
        yield from self._reducing_steps(protected)
        yield from self._iteration_steps()
        yield from self._dropping_steps(protected)
        for turn in range(current):
            yield TrimStep(partial(self._drop, turn, "2"))

    def _steps_by_age(
        self, early: Sequence[int], late: Sequence[int], protected: range, edited: Set[int]
    ) -> Iterator[TrimStep]:
        """Yield steps for results, then long arguments, then turns; the oldest of each first."""

        def is_other(index: int) -> bool:
            return index not in edited

        yield from self._masking_steps(sorted((*early, *late)), is_other)
        yield from self._window_steps(is_other)
        yield from self._argument_steps(sorted((*early, *late)))
        for turns in (early, late):
            yield from self._reducing_steps(turns)
            yield from self._dropping_steps(turns)
        yield from self._masking_steps(protected, is_other)
        yield from self._argument_steps((*protected, self._current))

    def _steps_by_worth(
        self,
        early: Sequence[int],
        late: Sequence[int],
        protected: range,
        edited: Set[int],
        superseded: Set[int],
    ) -> Iterator[TrimStep]:
        """Yield steps for results, calls and turns by worth; of the current turn only results and calls."""
        items = [item for turn in range(len(self._working)) for item in self._working.of(turn)]
        between = {item.index for item in self._between_windows()}
        current = {item.index for item in self._working.of(self._current)}

        def is_maskable(item: PromptItem) -> bool:
            return self._is_masking_on and (item.index in between or item.index not in current)

        ranking = Ranking(
            Relevance(items), edited, superseded, self._newest_indexes, is_maskable, _MIN_ARGUMENT_TOKENS
        )
        for turns in (early, late):
            yield from self._removal_steps(ranking, dict.fromkeys(turns, 1.0))
        # the newest read of a file that is being edited stays longer, and its turn with it
        kept = {turn for turn in protected if any(item.index in edited for item in self._working.of(turn))}
        recent = {turn: 0.0 if turn in kept else _PROTECTED_FACTOR for turn in protected}
        yield from self._removal_steps(ranking, recent | {self._current: 0.0}, spares_task=False)

    def _removal_steps(
        self, ranking: Ranking, turns: Mapping[int, float], *, spares_task: bool = True
    ) -> Iterator[TrimStep]:
        """Yield steps for the parts of turns by worth, and for the turns themselves by weight.

        Unless the task is spared, the task of an older turn is dropped before any of these turns.
        """
        found = (ranking.parts(turn, self._working.of(turn), weight) for turn, weight in turns.items())
        is_older_task = not spares_task
        for part in sorted((part for parts in found for part in parts), key=lambda part: part.order):
            if is_older_task and part.removal is Removal.DROP:
                is_older_task = False
                yield from self._task_steps(range(min(turns)))
            yield TrimStep(
                self._removal_action(part, ranking.relevance), for_history=part.turn != self._current
            )
            if part.removal is Removal.DROP and not spares_task:
                # a separate step, so that the task may be restored without its answer
                yield from self._task_steps([part.turn])

    def _removal_action(self, part: Part, relevance: Relevance) -> Callable[[], None]:
        """Return the action that removes a part of a turn."""
        turn, item = part.turn, part.items[0]
        match part.removal:
            case Removal.MASK:
                return partial(self._working.mask, turn, item, relevance.reason(item))
            case Removal.SHORTEN:
                return partial(self._working.shorten_arguments, turn, item)
            case Removal.OMIT:
                layer = "3c" if turn == self._current else "2"
                return partial(self._working.omit, turn, part.items, layer)
            case Removal.DROP:
                return partial(self._omit_all_but_task if self._is_task(turn) else self._drop, turn, "2")

    def _split_by_edited(self, turns: range, edited: Set[int]) -> tuple[list[int], list[int]]:
        """Split the turns: those without, and those with the newest read of a file that is being edited."""
        late = [turn for turn in turns if any(item.index in edited for item in self._working.of(turn))]
        return [turn for turn in turns if turn not in late], late

    def _superseded_steps(self, reasons: Mapping[int, str], edited: Set[int]) -> Iterator[TrimStep]:
        staying = self._newest_indexes | edited
        for turn in range(len(self._working)):
            for item in self._working.of(turn):
                if item.index in reasons and item.index not in staying:
                    mask = partial(self._working.mask, turn, item, reasons[item.index])
                    yield TrimStep(mask, for_history=turn != self._current, is_final=True)

    def _edited_reads(self, uses: Sequence[ToolUse]) -> set[int]:
        return reads_of_edited_files(uses, self._current - self._config.preserve_recent_turns)

    def _file_uses(self, first_turn: int) -> list[ToolUse]:
        turns = range(first_turn, len(self._working))
        return tool_uses([self._working.of(turn) for turn in turns], first_turn)

    def _masking_steps(self, turns: Sequence[int], is_selected: Callable[[int], bool]) -> Iterator[TrimStep]:
        """Yield steps that mask results and pictures of these turns at selected indexes, if masking is on."""
        if not self._is_masking_on:
            return
        for turn in turns:
            for item in self._working.of(turn):
                is_maskable = item.message.role == "tool" or has_pictures(item.message)
                if is_maskable and is_selected(item.index):
                    yield TrimStep(partial(self._working.mask, turn, item))

    def _window_steps(self, is_selected: Callable[[int], bool]) -> Iterator[TrimStep]:
        """Yield steps that mask results between the current turn's keep-windows at selected indexes."""
        for item in self._between_windows():
            if is_selected(item.index):
                yield TrimStep(partial(self._working.mask, self._current, item), for_history=False)

    def _argument_steps(self, turns: Sequence[int]) -> Iterator[TrimStep]:
        for turn in turns:
            for item in self._working.of(turn):
                if not item.message.tool_calls or item.index in self._newest_indexes:
                    continue
                if item.bound > _MIN_ARGUMENT_TOKENS:
                    shorten = partial(self._working.shorten_arguments, turn, item)
                    yield TrimStep(shorten, for_history=turn != self._current)

    def _reducing_steps(self, turns: Sequence[int]) -> Iterator[TrimStep]:
        for turn in turns:
            yield TrimStep(partial(self._reduce, turn))

    def _task_steps(self, turns: Sequence[int]) -> Iterator[TrimStep]:
        """Yield a step that drops the rest of the task's turn, if it is one of these."""
        for turn in turns:
            if self._is_task(turn):
                yield TrimStep(partial(self._drop, turn, "2"))

    def _iteration_steps(self) -> Iterator[TrimStep]:
        for iteration in split_iterations(self._working.of(self._current))[:-1]:
            yield TrimStep(partial(self._working.omit, self._current, iteration, "3c"), for_history=False)

    def _dropping_steps(self, turns: Sequence[int]) -> Iterator[TrimStep]:
        for turn in turns:
            yield TrimStep(partial(self._omit_all_but_task if self._is_task(turn) else self._drop, turn, "2"))

    def _omit_all_but_task(self, turn: int, layer: str) -> None:
        others = [item for item in self._working.of(turn) if item.index != self._task]
        self._working.omit(turn, others, layer)

    def _reduce(self, turn: int) -> None:
        """Reduce a turn to its request and final answer, if it has one."""
        items = self._working.of(turn)
        if not items or not is_answer(items[-1]):
            return
        others = [item for item in items[:-1] if not item.opens_turn]
        # messages that were invented for omitted ones are meaningless by themselves
        is_empty = all(item.index < 0 for item in (*items[:1], items[-1]))
        self._working.omit(turn, items if is_empty else others, "2")

    def _drop(self, turn: int, layer: str) -> None:
        self._working.omit(turn, self._working.of(turn), layer)

    def _level_newest(self) -> None:
        """Share the remaining room among the newest results, then among the newest arguments."""
        self._share_room(self._newest_results, MIN_RESULT_TOKENS)
        self._share_room(self._newest_calls, _MIN_ARGUMENT_TOKENS)

    def _share_room(self, find: Callable[[], list[PromptItem]], minimum: int) -> None:
        over = self._working.totals.bound - self._budget.available
        items = find() if over > 0 else []
        sizes = [item.bound for item in items]
        room = sum(sizes)
        # a cut may end up slightly above its share, and a text that its indicator would make longer is not
        # cut at all: measure again, and give less room with each attempt
        for attempt in range(_LEVELLING_ATTEMPTS):
            if over <= 0 or room <= 0:
                return
            room = 0 if attempt == _LEVELLING_ATTEMPTS - 1 else room - (over << attempt)
            for item, share in zip(items, level(sizes, room), strict=True):
                if max(share, minimum) < item.bound:
                    pinned = max(self._sizes.uncalibrated(share), minimum)
                    self._working.level(item, self._cap_for(item, pinned))
            over = self._working.totals.bound - self._budget.available

    def _cap_for(self, item: PromptItem, share: int) -> int:
        """Return the cap for a result, or for each call of a message, given the message's `share`."""
        plain = self._sizes.plain
        sizes = [plain.bound_text(call.arguments) for call in item.message.tool_calls]
        if not sizes:
            return share
        # short calls stay whole, long ones get equal parts
        return max(1, *level(sizes, share - (plain.bound_message(item.message) - sum(sizes))))

    def _deferred_tokens(self) -> float:
        """Return the tokens of the newest results beyond half of A, which other decisions ignore."""
        results = sum(item.bound for item in self._newest_results())
        # not rounded, like the targets: decisions must not depend on how two roundings interact
        return max(0, results - max(0, self._budget.available) / 2)

    def _newest(self) -> list[PromptItem]:
        iterations = split_iterations(self._working.of(self._current))
        return iterations[-1] if iterations else []

    def _newest_results(self) -> list[PromptItem]:
        return [item for item in self._newest() if item.message.role == "tool" and item.index >= 0]

    def _newest_calls(self) -> list[PromptItem]:
        return [
            item
            for item in self._newest()
            if item.index >= 0
            and shorten_arguments(item.message, 1, self._sizes.cutting, self._sizes.memo) is not item.message
        ]

    def _between_windows(self) -> list[PromptItem]:
        if not self._is_masking_on:
            return []
        first, last = self._config.tool_result_keep_first, self._config.tool_result_keep_last
        return maskable_results(self._working.of(self._current), first, last)

    @property
    def _has_priorities(self) -> bool:
        return self._config.trim_strategy != "oldest-first"

    @property
    def _is_masking_on(self) -> bool:
        return self._config.tool_result_keep_first > 0 or self._config.tool_result_keep_last > 0

    def _is_task(self, turn: int) -> bool:
        """Return whether the turn contains the task, the branch's first request, which is dropped last."""
        return self._has_priorities and self._task >= 0 and self._working.contains(turn, self._task)

    def _targets(self, share: float) -> TrimTargets:
        cap = self._budget.history_cap
        return TrimTargets(
            int(self._budget.history_count * share),
            cap * share if cap > 0 else math.inf,
            self._budget.available * share,
        )
