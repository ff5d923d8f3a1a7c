"""Give back what a trim took beyond what it had to: large messages free more room than is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rolling_chat.context.prompt_items import may_be_cut
from rolling_chat.context.trim_steps import TrimTargets
from rolling_chat.context.working_prompt import Change, Totals, WorkingPrompt

# A part of a result or a text that is smaller, in bound tokens, is not worth coming back.
_MIN_PART_TOKENS = 400
# A part of that share comes back before anything older does, a smaller one where room is left by all else.
# Measured by `kept`: at 0.5 a part pushes out more than it is worth, at 1.0 messages leave that nearly fit.
_MOST = 0.8
# A cut comes out near its share, not always below it: with how much of it to try again.
_LESS = 0.9


class Restoring:
    """Undo steps of a trim wherever the prompt then stays below the marks at which the trim stopped.

    `deferred` bound tokens of the newest results are ignored.
    """

    def __init__(self, working: WorkingPrompt, targets: TrimTargets, deferred: float) -> None:
        self._working = working
        self._targets = targets
        self._deferred = deferred

    @property
    def room(self) -> float:
        """Return the tokens that are free for history below the marks."""
        return -self._excess(self._working.totals, is_past=True)

    def restore(self, taken: Sequence[Sequence[Change]]) -> None:
        """Undo what was taken last, a step at a time, wherever it fits after all.

        Of a turn of the history nothing comes back before what left it later. What would not fit comes back
        in part: at once if that is most of it, else where there is room when all else is back.
        """
        waiting, partly = set[int](), list[Sequence[Change]]()
        for step in reversed(taken):
            turn = step[0].turn
            fits = not self._targets.are_exceeded(self._working.totals_without(step), self._deferred)
            if turn not in waiting and fits and self._working.restore(step):
                continue
            if turn not in waiting and not self._restore_part(step, _MOST):
                partly.append(step)
            waiting.update({turn} - {self._working.current})
        for step in partly:
            self._restore_part(step)

    def _restore_part(self, step: Sequence[Change], least: float = 0.0) -> bool:
        """Undo a step with as much of its longest result or text as there is room for.

        Nothing if that is less than a share of `least` of it; return whether there was anything.
        """
        cuttable = (change for change in step if may_be_cut(change.before))
        longest = max(cuttable, key=_size_before, default=None)
        if longest is None:
            return False
        is_past, size = longest.turn != self._working.current, _size_before(longest)
        room = size - self._excess(self._working.totals_without(step), is_past=is_past)
        if room < max(_MIN_PART_TOKENS, least * size) or not self._working.restore(step):
            return False
        while room >= _MIN_PART_TOKENS:
            self._working.restore_part(longest.turn, longest.key, int(room))
            if not self._targets.are_exceeded(self._working.totals, self._deferred):
                return True
            room *= _LESS
        self._working.redo(step)
        return False

    def _excess(self, totals: Totals, *, is_past: bool) -> float:
        """By how many tokens the marks are exceeded that a past or a current message counts for."""
        targets, over = self._targets, totals.bound - self._deferred - self._targets.window
        if not is_past:
            return over
        return math.inf if totals.in_history > targets.count else max(over, totals.history - targets.history)


def _size_before(change: Change) -> int:
    return change.before.bound if change.before is not None else 0
