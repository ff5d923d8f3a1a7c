"""What a request used, and what it cost."""

from __future__ import annotations

import pytest

from rolling_chat.messages import Usage
from rolling_chat.providers.usage import UsageReader, with_cost
from rolling_chat.settings.catalog import ModelInfo, Prices


def test_the_newest_figures_count() -> None:
    reader = UsageReader()
    for usage in (None, Usage(100, 1), Usage(0, 20, reasoning_tokens=5)):
        reader.add(usage)
    assert reader.usage == Usage(100, 20, reasoning_tokens=5)


def test_a_sum_of_several_requests_stays_one() -> None:
    reader = UsageReader()
    for usage in (Usage(100, 1, is_sum=True), Usage(0, 20)):
        reader.add(usage)
    assert reader.usage == Usage(100, 20, is_sum=True)


def test_cached_tokens_have_prices_of_their_own() -> None:
    info = ModelInfo("x", "y", prices=Prices(10.0, 50.0, 1.0, 12.5))
    usage = with_cost(Usage(100, 2, cached_read_tokens=60, cached_write_tokens=30), info)

    assert usage.cost == pytest.approx(10 * 10 + 60 * 1 + 30 * 12.5 + 2 * 50)


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    assert with_cost(Usage(100, 2), None).cost is None
    assert with_cost(Usage(100, 2), ModelInfo("x", "y", prices=Prices(None, 1.0))).cost is None


def test_without_usage_the_cost_is_unknown() -> None:
    assert with_cost(Usage(), ModelInfo("x", "y", prices=Prices(1.0, 1.0))).cost is None
