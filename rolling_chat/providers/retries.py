"""When a failed request is sent again, and after how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from rolling_chat.providers.protocol import ProviderError


class PassingError(ProviderError):
    """A failure that may pass by itself: the same request can be sent again a little later."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` requests in all; delays in seconds, doubled from `base` up to `cap`.

    The jitter is full: a delay is anywhere from 0 to its mark, so that clients which failed together
    do not come back together. A server's own retry-after is kept to, and when it is longer than
    `patience` the error is shown at once.
    """

    attempts: int = 5
    base: float = 0.5
    cap: float = 20.0
    patience: float = 60.0
    jitter: Callable[[], float] = random

    def delay_after(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds until attempt number `attempt` + 1, None when there is to be none."""
        if not isinstance(error, PassingError) or attempt >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.patience else None
        return float(self.jitter() * min(self.cap, self.base * 2.0 ** (attempt - 1)))
