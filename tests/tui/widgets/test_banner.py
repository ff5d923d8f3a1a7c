"""The line above a summarized session."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from rolling_chat.tui.widgets.banner import SUMMARIZED, Banner


class _Bare(App[None]):
    def compose(self) -> ComposeResult:
        yield Banner()


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (40, "Older messages in this session have b…"),
        (90, SUMMARIZED),
        (130, f"{SUMMARIZED} (esc or a click hides this)"),
    ],
)
async def test_it_takes_one_line_at_any_width(width: int, line: str) -> None:
    async with _Bare().run_test(size=(width, 10)) as pilot:
        banner = pilot.app.query_one(Banner)
        banner.show(shown=True)
        await pilot.pause()
        assert banner.size.height == 1
        assert "".join(part.text for part in banner.render_line(0)).strip() == line
