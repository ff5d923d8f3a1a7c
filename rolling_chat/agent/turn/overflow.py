"""What a refusal for length reveals: a limit, how the model counts, or only that less must be sent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.providers.protocol import ProviderError
from rolling_chat.sessions.records import Learned

SMALLEST_LIMIT = 256
"""The smallest plausible window, in tokens; a smaller number in a refusal means something else."""

_MIN_RATIO, _MAX_RATIO = 0.3, 6.0
"""The plausible range of a provider's count of a prompt, as a share of our estimate."""

_NEAR = 0.9  # a bound above this share of the room is near the limit
_SHARE = 0.75  # the share of a refused request to plan for when the refusal names no limit


@dataclass(frozen=True, slots=True)
class OverflowAdvice:
    """What to do after a provider refused a request as too long.

    `learned` is the limit to store; None if the refusal revealed none. Then `input_limit` is the maximum for
    the upper bound of this one request, in tokens. `counted` is the provider's count of the prompt, 0 if it
    gave none. `line` informs the user.
    """

    learned: Learned | None = None
    counted: int = 0
    input_limit: int = 0
    line: str = ""

    def without_counts(self) -> OverflowAdvice:
        """Return the advice for a refused prompt that the provider had counted as small enough.

        The next attempt is planned by estimates again, which show how much less to send.
        """
        line = "The model refused a prompt that its server had counted as small enough; planned again."
        return replace(self, input_limit=0, line=line)


def read_refusal(error: ProviderError, planned: PlannedRequest) -> OverflowAdvice:
    """Return what to do after the refusal of `planned`, and what it reveals about the model.

    Numbers that contradict the request are ignored: a limit that it cannot have exceeded, or a count that
    cannot be of this prompt.
    """
    limit, requested, report = error.limit, error.requested, planned.report
    if limit is None or limit < SMALLEST_LIMIT:
        return _nothing_said(planned)
    answer = planned.request.max_tokens or 0
    if requested is None:
        if limit >= report.bound + answer and not report.unproven:
            return _nothing_said(planned)
        return OverflowAdvice(Learned(limit), line=_line(limit, 0, planned))
    counted = error.prompt or _prompt_part(requested, answer, report.token_count)
    if requested <= limit or not _MIN_RATIO <= counted / max(report.token_count, 1) <= _MAX_RATIO:
        return _nothing_said(planned)
    return OverflowAdvice(Learned(limit), counted, line=_line(limit, counted, planned))


def _nothing_said(planned: PlannedRequest) -> OverflowAdvice:
    return OverflowAdvice(
        input_limit=max(int(planned.report.bound * _SHARE), 1),
        line="The model refused the request as too long without saying what would fit; "
        "planned again for less.",
    )


def is_near_limit(planned: PlannedRequest) -> bool:
    """Return whether the request is within 10 % of what should fit: a bare 400 may then be about length."""
    return planned.report.bound >= _NEAR * planned.room


def _prompt_part(requested: int, answer: int, estimate: int) -> int:
    """Return the prompt's part of the provider's count, which may include the room for the answer."""
    without_answer = requested - answer
    if answer == 0 or without_answer <= 0:
        return requested
    return min(requested, without_answer, key=lambda count: abs(math.log(count / max(estimate, 1))))


def _line(limit: int, counted: int, planned: PlannedRequest) -> str:
    parts = []
    window, bound = planned.request.window, planned.report.bound
    if limit < window:
        parts.append(f"its window is {limit:,} tokens, not {window:,}")
    if counted > bound:
        parts.append(f"it counts {counted / max(bound, 1):.1f} times as many tokens as were counted here")
    reason = " and ".join(parts) or f"{limit:,} tokens are all that fit, with the answer"
    return f"The model refused: {reason}; planned again."
