"""The transcript's colors as rich styles: the palette of a theme, and what a diff takes of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.style import Style

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.lines import StyledLine


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as `#rrggbb`; `dark` chooses the colours of highlighted code."""

    text: str = "#e0e0e0"
    muted: str = "#9a9a9a"
    accent: str = "#7aa2f7"
    secondary: str = "#bb9af7"
    success: str = "#9ece6a"
    warning: str = "#e0af68"
    error: str = "#f7768e"
    background: str = "#1a1b26"
    raised: str = "#24283b"
    dark: bool = True

    def style(self, color: str, *, bold: bool = False, italic: bool = False, raised: bool = False) -> Style:
        """A style in one of the palette's colours, on the ground or on the raised ground."""
        return _style(color, self.raised if raised else self.background, bold, italic)


@dataclass(frozen=True, slots=True)
class Look:
    """How items are drawn: cells across, and colours."""

    width: int
    palette: Palette


@lru_cache(maxsize=256)
def _style(color: str, ground: str, bold: bool, italic: bool) -> Style:
    return Style(color=color, bgcolor=ground, bold=bold, italic=italic)


def diff_lines(text: str, palette: Palette) -> list[StyledLine]:
    """A unified diff: what came and what went have signs of their own, and colours."""
    colors = {"+": palette.success, "-": palette.error, "@": palette.accent}
    return [
        [(line, palette.style(colors.get(line[:1], palette.text), raised=True))] for line in text.split("\n")
    ]


def is_diff(text: str) -> bool:
    """Does a text begin as a unified diff does?"""
    head = text[:4000].split("\n", 12)
    return any(above.startswith("--- ") and below.startswith("+++ ") for above, below in pairwise(head))
