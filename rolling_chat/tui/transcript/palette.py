"""The colours of the transcript, as rich styles; the view makes one from the theme in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
        ground = self.raised if raised else self.background
        return Style(color=color, bgcolor=ground, bold=bold, italic=italic)

    def markdown_styles(self) -> Mapping[str, Style]:
        """Rich's Markdown styles in these colours."""
        heading = Style(color=self.accent, bold=True)
        code = Style(color=self.secondary, bgcolor=self.raised)
        return {
            "markdown.h1": heading + Style(underline=True),
            "markdown.h2": heading,
            "markdown.h3": heading,
            "markdown.h4": heading,
            "markdown.h5": heading,
            "markdown.h6": heading,
            "markdown.code": code,
            "markdown.code_block": Style(color=self.text, bgcolor=self.raised),
            "markdown.block_quote": Style(color=self.muted, italic=True),
            "markdown.hr": Style(color=self.muted),
            "markdown.link": Style(color=self.accent, underline=True),
            "markdown.link_url": Style(color=self.muted),
            "markdown.item.bullet": Style(color=self.accent, bold=True),
            "markdown.item.number": Style(color=self.accent, bold=True),
            "markdown.table.border": Style(color=self.muted),
            "markdown.table.header": Style(color=self.accent, bold=True),
            "markdown.kbd": Style(bold=True),
        }
