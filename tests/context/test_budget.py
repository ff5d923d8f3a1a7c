"""The division of the window."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.budget import Budget, divide_window, history_cap
from rolling_chat.context.config import ContextConfig
from tests.support.conversations import context_settings


def divide(window: int, **keys: Any) -> Budget:
    config = ContextConfig(**{**keys, "max_context_tokens": window})
    return divide_window(config, "gpt-4o", system=100, tools=50)


def test_the_window_is_divided_into_reserve_margin_system_tools_and_what_is_available() -> None:
    budget = divide(100_000)
    assert (budget.reserve, budget.margin, budget.available) == (4_096, 10_000, 85_754)
    assert budget.history == 20_000
    assert divide(100_000, max_history_tokens=0).history == 85_754


@pytest.mark.parametrize(
    ("window", "cap"), [(30_000, 20_000), (200_000, 20_000), (400_000, 40_000), (1_000_000, 100_000)]
)
def test_history_may_take_a_tenth_of_a_large_window(window: int, cap: int) -> None:
    assert history_cap(ContextConfig(), window) == cap
    assert history_cap(ContextConfig(max_history_tokens=5), window) == 5
    assert history_cap(ContextConfig(max_history_tokens=0), window) == 0


def test_on_a_small_window_the_reserve_is_a_third() -> None:
    assert divide(9_000).reserve == 3_000
    assert divide(9_000, max_output_tokens=500).reserve == 500


def test_a_limit_on_input_alone_holds_the_room_too() -> None:
    assert divide(100_000, input_limit=50_000).room == 50_000


def test_the_room_does_not_shrink_where_reserve_and_margin_step_up_together() -> None:
    assert divide(30).room >= divide(29).room


@given(context_settings(), st.integers(1, 60_000))
def test_the_room_never_shrinks_as_the_window_grows(keys: dict[str, Any], window: int) -> None:
    smaller, larger = divide(window, **keys), divide(window + 1, **keys)
    assert larger.room >= smaller.room
    assert larger.history_count >= smaller.history_count
    assert larger.reserve >= 0 <= larger.margin
