"""Texts about the provider's prompt cache: how long it lives, and what a request costs without it."""

from __future__ import annotations

from rolling_chat import figures

_MIN_TOKENS = 1_000  # the cost of a shorter prompt is not worth a line


def cache_word(seconds_left: float | None) -> str:
    """Return `cache 4m`, the time until the cache expires, or `cache cold`; empty if unknown."""
    if seconds_left is None:
        return ""
    if seconds_left <= 0:
        return "cache cold"
    minutes = int(seconds_left // 60)
    if not minutes:
        return "cache <1m"
    return f"cache {minutes}m" if minutes < 60 else f"cache {minutes // 60}h"


def cold_cache_lines(tokens: int, price: float | None) -> tuple[str, ...]:
    """Return texts, longest first, about the cost of a request with nothing in the cache.

    `price` is in US dollars, None if unknown. There are none for a prompt too short to matter.
    """
    if tokens < _MIN_TOKENS:
        return ()
    about = f", about {figures.dollars(price)}" if price else ""
    size = f"cache cold: {figures.tokens(tokens)} tokens"
    return f"{size} at full price{about}", f"{size}{about}"
