"""How a window is divided, and the smallest window that has enough room."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import ContextConfig
from rolling_chat.context.budget import divide_window, smallest_window, window_budget
from tests.support.conversations import context_settings


def check_division(config: ContextConfig) -> None:
    budget = divide_window(config, "gpt-4o", system=0, tools=0)
    assert window_budget(config).room == budget.room
    assert (
        window_budget(config).room + window_budget(config).reserve + budget.margin
        == config.max_context_tokens
    )


@pytest.mark.parametrize("margin", [0.10, 0.02])
def test_planner_and_pipeline_divide_every_window_alike(margin: float) -> None:
    for window in range(1_000, 40_000):
        check_division(ContextConfig(max_context_tokens=window, safety_margin=margin))


@given(context_settings(), st.integers(1, 2_000_000))
def test_they_divide_it_alike_under_any_settings(keys: dict[str, Any], window: int) -> None:
    check_division(ContextConfig(**{**keys, "max_context_tokens": window, "input_limit": 0}))


@given(st.integers(0, 500_000), st.sampled_from([0.0, 0.02, 0.10, 0.5]))
def test_the_smallest_window_has_the_room_and_none_smaller_has(bound: int, margin: float) -> None:
    def room(window: int) -> int:
        return window_budget(ContextConfig(max_context_tokens=window, safety_margin=margin)).room

    window = smallest_window(ContextConfig(safety_margin=margin), bound)
    assert room(window) >= bound
    assert bound == 0 or room(window - 1) < bound
