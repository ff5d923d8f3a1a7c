"""What a request used and cost, from what the provider reported and the catalogue's prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rolling_chat.messages import Usage
from rolling_chat.settings.catalog import ModelInfo


def reported_usage(chunks: Iterable[Any]) -> Usage:
    """The usage of a stream: the newest that any of its chunks carried, all 0 where none did.

    The chunks are litellm's. Each figure is taken from the newest chunk that names it, for some
    providers spread theirs over several.
    """
    figures = {"input_tokens": 0, "output_tokens": 0, "cached_read": 0, "cached_write": 0, "reasoning": 0}
    for chunk in chunks:
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            found = _figures(usage)
            figures.update({name: value for name, value in found.items() if value})
    return Usage(
        input_tokens=figures["input_tokens"],
        output_tokens=figures["output_tokens"],
        cached_read_tokens=figures["cached_read"],
        cached_write_tokens=figures["cached_write"],
        reasoning_tokens=figures["reasoning"],
    )


def with_cost(usage: Usage, info: ModelInfo | None) -> Usage:
    """`usage` with its cost in US dollars; None where a price that is needed is not known."""
    if info is None or info.input_cost is None or info.output_cost is None:
        return usage
    if not (usage.input_tokens or usage.output_tokens):
        return usage
    read = info.input_cost if info.cache_read_cost is None else info.cache_read_cost
    write = info.input_cost if info.cache_write_cost is None else info.cache_write_cost
    fresh = max(0, usage.input_tokens - usage.cached_read_tokens - usage.cached_write_tokens)
    cost = (
        fresh * info.input_cost
        + usage.cached_read_tokens * read
        + usage.cached_write_tokens * write
        + usage.output_tokens * info.output_cost
    )
    return replace(usage, cost=cost)


def _figures(usage: Any) -> dict[str, int]:
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return {
        "input_tokens": _count(usage, "prompt_tokens"),
        "output_tokens": _count(usage, "completion_tokens"),
        "cached_read": _count(usage, "cache_read_input_tokens") or _count(prompt, "cached_tokens"),
        "cached_write": _count(usage, "cache_creation_input_tokens")
        or _count(prompt, "cache_write_tokens")
        or _count(prompt, "cache_creation_tokens"),
        "reasoning": _count(completion, "reasoning_tokens"),
    }


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
