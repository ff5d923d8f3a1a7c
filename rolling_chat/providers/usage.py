"""What a request used and cost, from what the provider reported and the catalog's prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Usage
from rolling_chat.providers.whole_answers import MAX_TOKENS
from rolling_chat.settings.catalog import NO_PRICES, ModelInfo


class UsageReader:
    """Reads the reported usage from a stream: each figure from the newest chunk that has it, else 0.

    Some providers spread their figures over several chunks.
    """

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}
        self._is_sum = False

    def take(self, chunks: Iterable[Any]) -> None:
        """Read litellm's `chunks`, the oldest first."""
        for chunk in chunks:
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                self._figures.update({name: value for name, value in _figures(usage).items() if value})
                self._is_sum = self._is_sum or _is_sum(usage)

    @property
    def usage(self) -> Usage:
        """What was reported so far."""
        return Usage(**self._figures, is_sum=self._is_sum)


def with_cost(usage: Usage, info: ModelInfo | None, ttl: CacheTtl = "5m") -> Usage:
    """Add the cost in US dollars to `usage`; None if a price that is needed is not known.

    `ttl` is the time to live that the request's cache marks asked for.
    """
    prices = info.prices_of(usage.input_tokens) if info is not None else NO_PRICES
    if prices.input is None or prices.output is None:
        return usage
    if not (usage.input_tokens or usage.output_tokens):
        return usage
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.write(ttl) or 0.0
    fresh = max(0, usage.input_tokens - usage.cached_read_tokens - usage.cached_write_tokens)
    cost = (
        fresh * prices.input
        + usage.cached_read_tokens * read
        + usage.cached_write_tokens * write
        + usage.output_tokens * prices.output
    )
    return replace(usage, cost=cost)


def _figures(usage: Any) -> dict[str, int]:
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return {
        "input_tokens": _count(usage, "prompt_tokens"),
        "output_tokens": _count(usage, "completion_tokens"),
        "cached_read_tokens": _count(usage, "cache_read_input_tokens") or _count(prompt, "cached_tokens"),
        "cached_write_tokens": _count(usage, "cache_creation_input_tokens")
        or _count(prompt, "cache_write_tokens")
        or _count(prompt, "cache_creation_tokens"),
        "reasoning_tokens": _count(completion, "reasoning_tokens"),
    }


def _is_sum(usage: Any) -> bool:
    """Return whether the provider says that it made several requests of one.

    Anthropic names the tools that it ran itself, and lists the rounds of a request that it compacted.
    """
    ran = getattr(usage, "server_tool_use", None)
    rounds = getattr(usage, "iterations", None)
    counts = ran if isinstance(ran, dict) else getattr(ran, "__dict__", {})
    has_run = any(isinstance(count, int) and count > 0 for count in counts.values())
    return has_run or (isinstance(rounds, list) and len(rounds) > 1)


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < MAX_TOKENS else 0
