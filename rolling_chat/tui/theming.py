"""Themes: from a theme file's values to Textual's theme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.theme import Theme

from rolling_chat.settings.themes import COLORS

if TYPE_CHECKING:
    from rolling_chat.settings.themes import ThemeSpec


def textual_theme(spec: ThemeSpec) -> Theme:
    """Textual's theme of a theme file."""
    colors: dict[str, Any] = {name: value for name, value in spec.colors.items() if name in COLORS}
    colors.setdefault("primary", "#7aa2f7")
    return Theme(
        name=spec.name, dark=spec.dark, variables={**_scroll_bars(colors), **spec.variables}, **colors
    )


def _scroll_bars(colors: Mapping[str, str]) -> dict[str, str]:
    """Scroll bars on the ground of what they scroll, instead of Textual's black."""
    ground = colors.get("background")
    if not ground:
        return {}
    tracks = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
    return {**dict.fromkeys(tracks, ground), "scrollbar-corner-color": ground}
