"""Theme files become Textual themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from rolling_chat.settings.themes import ThemeSpec, load_themes
from rolling_chat.tui.theming import textual_theme


@pytest.mark.parametrize("name", ["midnight", "daylight", "contrast"])
def test_a_shipped_theme_is_complete_and_text_can_be_read_on_its_ground(name: str, tmp_path: Path) -> None:
    theme = textual_theme(load_themes(tmp_path)[name])
    assert theme.foreground
    assert theme.background
    contrast = Color.parse(theme.foreground).get_contrast_text(1.0)
    assert contrast.brightness != Color.parse(theme.foreground).brightness
    assert theme.dark == (Color.parse(theme.background).brightness < 0.5)


def test_a_variable_of_the_file_wins_over_ours() -> None:
    spec = ThemeSpec(
        "x", True, {"primary": "#ffffff", "background": "#000000"}, {"scrollbar-background": "#123456"}
    )
    assert textual_theme(spec).variables["scrollbar-background"] == "#123456"
