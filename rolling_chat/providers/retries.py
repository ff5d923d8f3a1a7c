"""When a failed request is sent again, and after how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random

from rolling_chat.figures import plural
from rolling_chat.providers.protocol import ErrorKind, ProviderError

_OUTAGES = frozenset({ErrorKind.OVERLOADED, ErrorKind.NO_NETWORK, ErrorKind.THROTTLED})


class PassingError(ProviderError):
    """A temporary failure: the same request can be sent again a little later."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A retry policy: try for `minutes` in all, with delays in seconds, doubled from `base` up to `cap`.

    The jitter is full: a delay is anywhere from 0 to its mark, so that clients which failed together
    do not come back together. A server's own retry-after is the least that is waited: one that always says 0
    would be asked without end. When it is longer than what is left of the time, the error is shown at once.
    """

    minutes: float = 5.0
    base: float = 0.5
    cap: float = 20.0
    jitter: Callable[[], float] = random

    def within(self, seconds: float | None) -> RetryPolicy:
        """Return a policy that tries for `seconds` at most, None for as long as this one."""
        if seconds is None:
            return self
        return replace(self, minutes=min(self.minutes, seconds / 60))

    def seconds_left(self, elapsed: float) -> float:
        """Return how long to go on trying, `elapsed` seconds after the first request."""
        return max(0.0, self.minutes * 60 - elapsed)

    def delay_after(self, error: ProviderError, attempt: int, elapsed: float) -> float | None:
        """Return the seconds to wait before attempt `attempt` + 1, None to give up."""
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
    """Add to an error how often and how long the request was tried, if more than once."""
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
    """Return whether the server failed and not the request: another model may answer the same one.

    A limit for each minute that this very request exceeds names its size; it is about the request.
    """
    return error.kind in _OUTAGES and error.requested is None
