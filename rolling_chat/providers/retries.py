"""Decide whether and when a failed request is sent again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random

from rolling_chat.figures import plural
from rolling_chat.providers.protocol import ErrorKind, ProviderError

_OUTAGES = frozenset({ErrorKind.OVERLOADED, ErrorKind.NO_NETWORK, ErrorKind.THROTTLED})


class PassingError(ProviderError):
    """A temporary failure: the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A retry policy: try for `minutes` in total, with delays in seconds that double from `base` up to `cap`.

    Jitter is full: a delay is random between 0 and its nominal value, so that clients which failed together
    do not return together. A server's retry-after is a minimum, because one that is always 0 would otherwise
    cause endless requests. If it exceeds the remaining time, the error is reported at once.
    """

    minutes: float = 5.0
    base: float = 0.5
    cap: float = 20.0
    jitter: Callable[[], float] = random

    def within(self, seconds: float | None) -> RetryPolicy:
        """Return a policy that tries for at most `seconds`; None keeps this one."""
        if seconds is None:
            return self
        return replace(self, minutes=min(self.minutes, seconds / 60))

    def seconds_left(self, elapsed: float) -> float:
        """Return the remaining seconds for retries, `elapsed` seconds after the first request."""
        return max(0.0, self.minutes * 60 - elapsed)

    def delay_after(self, error: ProviderError, attempt: int, elapsed: float) -> float | None:
        """Return the seconds to wait before attempt `attempt` + 1; None to give up."""
        left = self.seconds_left(elapsed)
        if not isinstance(error, PassingError) or left <= 0:
            return None
        backoff = self.jitter() * min(self.cap, self.base * 2.0 ** min(attempt - 1, 30))
        if error.retry_after is None:
            return min(left, backoff)
        if error.retry_after > left:
            return None
        return min(left, max(error.retry_after, backoff))


def gave_up(error: ProviderError, attempts: int, seconds: float) -> ProviderError:
    """Add the number and duration of attempts to an error, if there was more than one."""
    if attempts < 2 or not isinstance(error, PassingError):
        return error
    took = plural(round(seconds), "second") if seconds < 90 else plural(round(seconds / 60), "minute")
    return PassingError(
        error.kind,
        f"{error} Tried {attempts} times in {took}.",
        detail=error.detail,
        retry_after=error.retry_after,
    )


def is_outage(error: ProviderError) -> bool:
    """Return whether the server failed, not the request, so that another model may answer the same request.

    If the request itself exceeds a limit per minute, the error names its size and counts against the request.
    """
    return error.kind in _OUTAGES and error.requested is None
