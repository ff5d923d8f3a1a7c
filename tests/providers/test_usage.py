"""What a request used, and what it cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rolling_chat.messages import Usage
from rolling_chat.providers.usage import UsageReader, with_cost
from rolling_chat.settings.catalog import ModelInfo, Prices


def reported_usage(chunks: list[Any]) -> Usage:
    reader = UsageReader()
    reader.take(chunks)
    return reader.usage


def _usage(**fields: Any) -> Any:
    return SimpleNamespace(usage=SimpleNamespace(**fields))


def test_the_newest_figures_count() -> None:
    chunks = [
        SimpleNamespace(),
        _usage(prompt_tokens=100, completion_tokens=1),
        _usage(prompt_tokens=0, completion_tokens=20),
    ]
    assert reported_usage(chunks) == Usage(input_tokens=100, output_tokens=20)


@pytest.mark.parametrize(
    ("more", "is_sum"),
    [
        ({}, False),
        ({"server_tool_use": SimpleNamespace(web_search_requests=2)}, True),
        ({"server_tool_use": {"web_search_requests": 1}}, True),
        ({"server_tool_use": SimpleNamespace(web_search_requests=0, tool_search_requests=None)}, False),
        ({"iterations": [{"input_tokens": 60}, {"input_tokens": 40}]}, True),
        ({"iterations": [{"input_tokens": 100}]}, False),
        ({"server_tool_use": "twice", "iterations": 3}, False),
    ],
)
def test_the_sum_of_several_requests_is_known(more: dict[str, Any], is_sum: bool) -> None:
    chunks = [_usage(prompt_tokens=100, completion_tokens=1, **more), _usage(completion_tokens=20)]
    assert reported_usage(chunks) == Usage(input_tokens=100, output_tokens=20, is_sum=is_sum)


def test_cached_and_reasoning_tokens_are_found_under_both_names() -> None:
    openai = _usage(
        prompt_tokens=100,
        completion_tokens=20,
        prompt_tokens_details=SimpleNamespace(cached_tokens=60),
        completion_tokens_details=SimpleNamespace(reasoning_tokens=15),
    )
    anthropic = _usage(prompt_tokens=100, cache_read_input_tokens=60, cache_creation_input_tokens=30)

    assert reported_usage([openai]) == Usage(100, 20, cached_read_tokens=60, reasoning_tokens=15)
    assert reported_usage([anthropic]) == Usage(100, 0, cached_read_tokens=60, cached_write_tokens=30)


def test_cached_tokens_have_prices_of_their_own() -> None:
    info = ModelInfo("x", "y", prices=Prices(10.0, 50.0, 1.0, 12.5))
    usage = with_cost(Usage(100, 2, cached_read_tokens=60, cached_write_tokens=30), info)

    assert usage.cost == pytest.approx(10 * 10 + 60 * 1 + 30 * 12.5 + 2 * 50)


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    assert with_cost(Usage(100, 2), None).cost is None
    assert with_cost(Usage(100, 2), ModelInfo("x", "y", prices=Prices(None, 1.0))).cost is None


def test_without_usage_the_cost_is_unknown() -> None:
    assert with_cost(Usage(), ModelInfo("x", "y", prices=Prices(1.0, 1.0))).cost is None
