"""When a failed request is sent again, and after how long."""

from __future__ import annotations

from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.providers.retries import PassingError, RetryPolicy


def _overloaded(retry_after: float | None = None) -> PassingError:
    return PassingError(ErrorKind.OVERLOADED, "x", retry_after=retry_after)


def test_delays_double_up_to_the_cap() -> None:
    policy = RetryPolicy(attempts=9, base=0.5, cap=4.0, jitter=lambda: 1.0)
    assert [policy.delay_after(_overloaded(), n) for n in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_jitter_takes_a_delay_down_to_nothing() -> None:
    assert RetryPolicy(jitter=lambda: 0.0).delay_after(_overloaded(), 1) == 0.0


def test_attempts_are_capped() -> None:
    policy = RetryPolicy(attempts=3)

    assert policy.delay_after(_overloaded(), 2) is not None
    assert policy.delay_after(_overloaded(), 3) is None


def test_the_servers_word_is_kept_to() -> None:
    assert RetryPolicy().delay_after(_overloaded(retry_after=12.0), 1) == 12.0


def test_a_wait_beyond_patience_is_not_begun() -> None:
    assert RetryPolicy(patience=60).delay_after(_overloaded(retry_after=3600.0), 1) is None


def test_what_does_not_pass_is_not_tried_again() -> None:
    assert RetryPolicy().delay_after(ProviderError(ErrorKind.TOO_LONG, "x"), 1) is None
