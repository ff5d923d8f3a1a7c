"""The transcript's colors as rich styles: a theme's palette, and the coloring of diffs."""

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
    """A theme's colors as `#rrggbb`; `dark` selects the colors of highlighted code."""

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
        """Return a style in one of the palette's colors, on the normal or the raised background."""
        return _style(color, self.raised if raised else self.background, bold, italic)


@dataclass(frozen=True, slots=True)
class Look:
    """The width, in cells, and the colors used to draw items."""

    width: int
    palette: Palette


@lru_cache(maxsize=256)
def _style(color: str, ground: str, bold: bool, italic: bool) -> Style:
    return Style(color=color, bgcolor=ground, bold=bold, italic=italic)


def diff_lines(text: str, palette: Palette) -> list[StyledLine]:
    """Return the lines of a unified diff, colored by their first character."""
    colors = {"+": palette.success, "-": palette.error, "@": palette.accent}
    return [
        [(line, palette.style(colors.get(line[:1], palette.text), raised=True))] for line in text.split("\n")
    ]


def is_diff(text: str) -> bool:
    """Return whether a text begins like a unified diff."""
    head = text[:4000].split("\n", 12)
    return any(above.startswith("--- ") and below.startswith("+++ ") for above, below in pairwise(head))
