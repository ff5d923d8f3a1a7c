"""Compute a request's usage and cost, from the provider's report and the catalog's prices."""

from __future__ import annotations

from dataclasses import replace

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Usage
from rolling_chat.settings.catalog import NO_PRICES, ModelInfo

_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cached_read_tokens",
    "cached_write_tokens",
    "reasoning_tokens",
)


class UsageReader:
    """Combines usage that arrives in pieces: each figure is the newest reported one, or 0.

    Some providers spread their figures over several events.
    """

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}
        self._is_sum = False

    def add(self, usage: Usage | None) -> None:
        """Add the usage in one event, or None."""
        if usage is None:
            return
        self._figures |= {name: value for name in _FIGURES if (value := getattr(usage, name))}
        self._is_sum = self._is_sum or usage.is_sum

    @property
    def usage(self) -> Usage:
        """The usage reported so far."""
        return Usage(**self._figures, is_sum=self._is_sum)


def with_cost(usage: Usage, info: ModelInfo | None, ttl: CacheTtl = "5m") -> Usage:
    """Add the cost in US dollars to `usage`; None if a required price is unknown.

    `ttl` is the time to live that the request's cache marks requested.
    """
    prices = info.prices_of(usage.input_tokens) if info is not None else NO_PRICES
    if prices.input is None or prices.output is None:
        return usage
    if not (usage.input_tokens or usage.output_tokens):
        return usage
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.write(ttl) or 0.0
    uncached = max(0, usage.input_tokens - usage.cached_read_tokens - usage.cached_write_tokens)
    cost = (
        uncached * prices.input
        + usage.cached_read_tokens * read
        + usage.cached_write_tokens * write
        + usage.output_tokens * prices.output
    )
    return replace(usage, cost=cost)
