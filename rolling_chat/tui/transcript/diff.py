"""Unified diffs: what came and what went, told apart by signs and by colours."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.inline import Line
    from rolling_chat.tui.transcript.palette import Palette


def diff_lines(text: str, palette: Palette) -> list[Line]:
    """A unified diff: what came and what went have signs of their own, and colours."""
    colors = {"+": palette.success, "-": palette.error, "@": palette.accent}
    return [
        [(line, palette.style(colors.get(line[:1], palette.text), raised=True))] for line in text.split("\n")
    ]


def is_diff(text: str) -> bool:
    """Does a text begin as a unified diff does?"""
    head = text[:4000].split("\n", 12)
    return any(above.startswith("--- ") and below.startswith("+++ ") for above, below in pairwise(head))
