"""ContextConfig refuses invalid values and names the key."""

from __future__ import annotations

from typing import Any

import pytest

from rolling_chat.context import ContextConfig, get_context_limit
from rolling_chat.context.budget import divide_window


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_tool_result_tokens", 0),
        ("safety_margin", 1.0),
        ("trim_to", 0.0),
        ("usage_threshold", 1.5),
        ("max_history_tokens", -1),
        ("max_history_tokens", "most"),
        ("trim_strategy", "newest-first"),
        ("tool_result_truncation", "middle"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key):
        ContextConfig(**{key: value})


def test_any_cap_above_nothing_is_valid() -> None:
    assert ContextConfig(max_tool_result_tokens=1).max_tool_result_tokens == 1


def test_the_window_is_divided_into_reserve_margin_and_room() -> None:
    budget = divide_window(ContextConfig(max_context_tokens=100_000), None, system=1_000, tools=500)
    assert (budget.reserve, budget.margin) == (4_096, 10_000)
    assert budget.available == 100_000 - 4_096 - 10_000 - 1_500
    assert budget.history == 20_000


def test_the_reserve_is_at_most_a_third_of_a_small_window_and_the_models_own_limit() -> None:
    assert divide_window(ContextConfig(max_context_tokens=6_000), None, system=0, tools=0).reserve == 2_000
    limited = ContextConfig(max_context_tokens=100_000, max_output_tokens=1_024)
    assert divide_window(limited, None, system=0, tools=0).reserve == 1_024


def test_a_limit_on_input_alone_holds_the_prompt_too() -> None:
    config = ContextConfig(max_context_tokens=400_000, input_limit=272_000)
    assert divide_window(config, None, system=0, tools=0).room == 272_000


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("openai/gpt-5-mini", 400_000),
        ("x/Llama-4-Scout", 327_680),
        ("who", 128_000),
    ],
)
def test_windows_are_known_by_name(model: str, window: int) -> None:
    assert get_context_limit(model) == window
