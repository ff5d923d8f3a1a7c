"""Share scarce room among things of different sizes."""

from __future__ import annotations

from collections.abc import Sequence


def level(sizes: Sequence[int], room: int) -> list[int]:
    """Share `room` among results of `sizes` tokens: small ones stay whole, large ones get equal parts.

    Returns what each may take; their sum is at most `room`, and fills it when they do not all fit.
    """
    shares = [0] * len(sizes)
    left = max(0, room)
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for rank, index in enumerate(order):
        shares[index] = min(sizes[index], left // (len(order) - rank))
        left -= shares[index]
    return shares
