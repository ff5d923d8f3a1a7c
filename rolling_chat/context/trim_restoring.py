"""Restore messages that a trim removed beyond its targets: large ones free more room than needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rolling_chat.context.prompt_items import can_be_cut
from rolling_chat.context.trim_steps import TrimTargets
from rolling_chat.context.working_prompt import Change, Totals, WorkingPrompt

# In bound tokens; a smaller part of a result or a text is not worth restoring.
_MIN_PART_TOKENS = 400
# A part of at least this share is restored before anything older; a smaller one only in room that is left at
# the end. Measured by `kept`: at 0.5 a part displaces more than it is worth, at 1.0 messages that nearly fit
# are lost.
_MAIN_PART_SHARE = 0.8
# A cut may come out slightly above its share; each retry reduces it by this factor.
_RETRY_FACTOR = 0.9


class Restorer:
    """Undoes steps of a trim if the prompt then stays within the targets of the trim.

    `deferred` bound tokens of the newest results are ignored.
    """

    def __init__(self, working: WorkingPrompt, targets: TrimTargets, deferred: float) -> None:
        self._working = working
        self._targets = targets
        self._deferred = deferred

    @property
    def room(self) -> float:
        """The free tokens for history within the targets."""
        return -self._excess(self._working.totals, is_past=True)

    def restore(self, taken: Sequence[Sequence[Change]]) -> None:
        """Undo the last steps first, one at a time, wherever the result fits.

        In a turn of the history, a message is not restored before one that was removed later. What does not
        fit whole is restored in part: immediately if that is most of it, otherwise at the end if there is
        room.
        """
        blocked_turns, partial_steps = set[int](), list[Sequence[Change]]()
        for step in reversed(taken):
            turn = step[0].turn
            fits = not self._targets.are_exceeded(self._working.totals_without(step), self._deferred)
            if turn not in blocked_turns and fits and self._working.restore(step):
                continue
            if turn not in blocked_turns and not self._restore_part(step, _MAIN_PART_SHARE):
                partial_steps.append(step)
            blocked_turns.update({turn} - {self._working.current})
        for step in partial_steps:
            self._restore_part(step)

    def _restore_part(self, step: Sequence[Change], min_share: float = 0.0) -> bool:
        """Undo a step with as much of its longest result or text as fits; return whether any was restored.

        Nothing is restored if that is less than `min_share`, a share of the whole.
        """
        cuttable = (change for change in step if can_be_cut(change.before))
        longest = max(cuttable, key=_size_before, default=None)
        if longest is None:
            return False
        is_past, size = longest.turn != self._working.current, _size_before(longest)
        room = size - self._excess(self._working.totals_without(step), is_past=is_past)
        if room < max(_MIN_PART_TOKENS, min_share * size) or not self._working.restore(step):
            return False
        while room >= _MIN_PART_TOKENS:
            self._working.restore_part(longest.turn, longest.key, int(room))
            if not self._targets.are_exceeded(self._working.totals, self._deferred):
                return True
            room *= _RETRY_FACTOR
        self._working.redo(step)
        return False

    def _excess(self, totals: Totals, *, is_past: bool) -> float:
        """Return by how many tokens the targets for a past or a current message are exceeded."""
        targets, over = self._targets, totals.bound - self._deferred - self._targets.window
        if not is_past:
            return over
        return math.inf if totals.in_history > targets.count else max(over, totals.history - targets.history)


def _size_before(change: Change) -> int:
    return change.before.bound if change.before is not None else 0
