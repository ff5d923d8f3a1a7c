"""The colours of the transcript, as rich styles; the view makes a palette from the theme in force."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style


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


@lru_cache(maxsize=256)
def _style(color: str, ground: str, bold: bool, italic: bool) -> Style:
    return Style(color=color, bgcolor=ground, bold=bold, italic=italic)
