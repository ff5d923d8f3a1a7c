"""Divide limited room among items of different sizes."""

from __future__ import annotations

from collections.abc import Sequence


def level(sizes: Sequence[int], room: int) -> list[int]:
    """Divide `room` among items of `sizes` tokens: small ones stay whole, large ones get equal parts.

    Return the share of each. The shares add up to at most `room`, and to exactly `room` if not everything
    fits.
    """
    shares = [0] * len(sizes)
    left = max(0, room)
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for rank, index in enumerate(order):
        shares[index] = min(sizes[index], left // (len(order) - rank))
        left -= shares[index]
    return shares
