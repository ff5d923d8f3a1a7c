"""Theme files become Textual themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from rolling_chat.settings.themes import ThemeSpec, load_themes, shipped_dir
from rolling_chat.tui.theming import textual_theme
from tests.support.colors import READABLE, contrast
from tests.support.tui import make_app, make_chat, screen_of, wait_until

SHIPPED = sorted(file.stem for file in shipped_dir().glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_theme_is_complete_and_text_can_be_read_on_its_ground(name: str, tmp_path: Path) -> None:
    theme = textual_theme(load_themes(tmp_path)[name])
    assert theme.foreground
    assert theme.background
    assert contrast(theme.foreground, theme.background) >= READABLE
    assert theme.dark == (Color.parse(theme.background).brightness < 0.5)


@pytest.mark.parametrize("name", SHIPPED)
async def test_the_colors_of_the_transcript_can_be_read_on_its_grounds_and_plain_text_also_selected(
    name: str, tmp_path: Path
) -> None:
    ground = load_themes(tmp_path)[name].colors["background"]
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        pilot.app.theme = name
        look = lambda: screen_of(pilot).transcript.document.look.palette  # noqa: E731
        await wait_until(pilot, lambda: look().background.lower() == ground)
        drawn = look()
        colors = (
            drawn.text,
            drawn.muted,
            drawn.accent,
            drawn.secondary,
            drawn.success,
            drawn.warning,
            drawn.error,
        )
        for below in (drawn.background, drawn.raised):
            assert min(contrast(color, below) for color in colors) >= READABLE, below
        selected = screen_of(pilot).get_component_rich_style("screen--selection").bgcolor
        assert selected is not None
        assert selected.triplet is not None
        assert selected.triplet.hex != ground
        assert contrast(drawn.text, selected.triplet.hex) >= READABLE


def test_a_variable_of_the_file_wins_over_ours() -> None:
    spec = ThemeSpec(
        "x", True, {"primary": "#ffffff", "background": "#000000"}, {"scrollbar-background": "#123456"}
    )
    assert textual_theme(spec).variables["scrollbar-background"] == "#123456"
