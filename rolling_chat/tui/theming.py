"""Themes: convert a theme file's values to a Textual theme and to the transcript's palette."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from textual.color import Color
from textual.theme import Theme

from rolling_chat.settings.themes import COLORS
from rolling_chat.tui.transcript.colors import Palette

if TYPE_CHECKING:
    from textual.app import App

    from rolling_chat.settings.themes import ThemeSpec


def textual_theme(spec: ThemeSpec) -> Theme:
    """Return the Textual theme for a theme file."""
    colors: dict[str, Any] = {name: value for name, value in spec.colors.items() if name in COLORS}
    colors.setdefault("primary", "#7aa2f7")
    return Theme(
        name=spec.name, dark=spec.dark, variables={**_scroll_bars(colors), **spec.variables}, **colors
    )


def _scroll_bars(colors: Mapping[str, str]) -> dict[str, str]:
    """Return the colors of scroll bars: the theme's background instead of Textual's black."""
    ground = colors.get("background")
    if not ground:
        return {}
    tracks = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
    return {**dict.fromkeys(tracks, ground), "scrollbar-corner-color": ground}


# share of the text color in muted text: readable on either background (4.5, WCAG 2.2 AA), yet distinct
_MUTED_DARK, _MUTED_LIGHT = 0.62, 0.68


def palette_of(app: App[Any]) -> Palette:
    """Return the transcript's colors in the active theme."""
    return _palette(app.theme, app.current_theme.dark, tuple(_wanted(app.theme_variables).items()))


def _wanted(variables: Mapping[str, str]) -> dict[str, str]:
    names = ("foreground", "primary", "secondary", "success", "warning", "error", "background", "surface")
    return {name: variables[name] for name in names}


@lru_cache(maxsize=16)
def _palette(_theme: str, dark: bool, colors: tuple[tuple[str, str], ...]) -> Palette:
    by_name = {name: Color.parse(value) for name, value in colors}
    ground = by_name["background"]
    text = by_name["foreground"]
    return Palette(
        text=text.hex6,
        muted=ground.blend(text, _MUTED_DARK if dark else _MUTED_LIGHT).hex6,
        accent=by_name["primary"].hex6,
        secondary=by_name["secondary"].hex6,
        success=by_name["success"].hex6,
        warning=by_name["warning"].hex6,
        error=by_name["error"].hex6,
        background=ground.hex6,
        raised=by_name["surface"].hex6,
        dark=dark,
    )
