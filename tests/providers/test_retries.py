"""When a failed request is sent again, and after how long."""

from __future__ import annotations

from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.providers.retries import PassingError, RetryPolicy, gave_up


def _overloaded(retry_after: float | None = None) -> PassingError:
    return PassingError(ErrorKind.OVERLOADED, "x", retry_after=retry_after)


def test_delays_double_up_to_the_cap() -> None:
    policy = RetryPolicy(base=0.5, cap=4.0, jitter=lambda: 1.0)
    delays = [policy.delay_after(_overloaded(), attempt, 0.0) for attempt in (1, 2, 3, 4, 5, 9_999)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_jitter_takes_a_delay_down_to_nothing() -> None:
    assert RetryPolicy(jitter=lambda: 0.0).delay_after(_overloaded(), 1, 0.0) == 0.0


def test_the_last_try_is_at_the_end_of_the_time() -> None:
    policy = RetryPolicy(minutes=5, jitter=lambda: 1.0)

    assert policy.delay_after(_overloaded(), 9, 299.0) == 1.0
    assert policy.delay_after(_overloaded(), 9, 300.0) is None


def test_no_minutes_are_one_try() -> None:
    assert RetryPolicy(minutes=0).delay_after(_overloaded(), 1, 0.0) is None
    assert RetryPolicy(minutes=0).delay_after(_overloaded(retry_after=0.0), 1, 0.0) is None


def test_the_servers_retry_after_is_respected() -> None:
    assert RetryPolicy().delay_after(_overloaded(retry_after=120.0), 1, 0.0) == 120.0


def test_a_wait_beyond_the_time_left_is_not_begun() -> None:
    assert RetryPolicy().delay_after(_overloaded(retry_after=120.0), 1, 200.0) is None


def test_a_permanent_failure_is_not_tried_again() -> None:
    assert RetryPolicy().delay_after(ProviderError(ErrorKind.TOO_LONG, "x"), 1, 0.0) is None


def test_a_server_that_always_says_retry_now_is_not_asked_endlessly() -> None:
    policy = RetryPolicy(base=0.5, cap=4.0, jitter=lambda: 1.0)
    delays = [policy.delay_after(_overloaded(retry_after=0.0), attempt, 0.0) for attempt in (1, 2, 9)]
    assert delays == [0.5, 1.0, 4.0]


def test_the_last_error_says_how_long_it_was_tried() -> None:
    assert str(gave_up(_overloaded(), 1, 0.0)) == "x"
    assert str(gave_up(_overloaded(), 2, 1.2)) == "x Tried 2 times in 1 second."
    assert str(gave_up(_overloaded(), 14, 300.0)) == "x Tried 14 times in 5 minutes."
    assert str(gave_up(ProviderError(ErrorKind.BAD_KEY, "x"), 2, 9.0)) == "x"
