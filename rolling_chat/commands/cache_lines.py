"""The words for the provider's prompt cache: how long it lives, and what it costs once it is cold."""

from __future__ import annotations

from rolling_chat import figures

_LEAST_WORTH = 1_000  # tokens: what a shorter prompt costs anew is not worth a line


def cache_word(seconds_left: float | None) -> str:
    """Return `cache 4m`, the time until the cache dies, or `cache cold`; empty where that is not known."""
    if seconds_left is None:
        return ""
    if seconds_left <= 0:
        return "cache cold"
    minutes = int(seconds_left // 60)
    if not minutes:
        return "cache <1m"
    return f"cache {minutes}m" if minutes < 60 else f"cache {minutes // 60}h"


def cold_cache_lines(tokens: int, price: float | None) -> tuple[str, ...]:
    """Return texts, longest first, on what a request costs with nothing in the cache.

    `price` is in US dollars, None if unknown. None for a prompt too short to matter.
    """
    if tokens < _LEAST_WORTH:
        return ()
    about = f", about {figures.dollars(price)}" if price else ""
    size = f"cache cold: {figures.tokens(tokens)} tokens"
    return f"{size} at full price{about}", f"{size}{about}"
