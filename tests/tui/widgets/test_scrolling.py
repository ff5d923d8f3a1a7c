from __future__ import annotations

import random

from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.scrollbar import ScrollBar

from rolling_chat.tui.widgets.scrolling import RowScroller


class Rows(RowScroller):
    """A widget that scrolls nothing."""

    DEFAULT_CSS = "Rows { overflow-y: scroll; overflow-x: hidden; }"

    def move_lines(self, lines: int) -> None:
        pass


class RowsApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Rows()


def looks(bar: ScrollBar) -> list[object]:
    lines = bar.render_lines(Region(0, 0, bar.size.width, bar.size.height))
    return [[(part.text, part.style) for part in line] for line in lines]


async def test_a_scroll_bar_that_is_redrawn_in_part_looks_as_if_it_were_redrawn_whole() -> None:
    rng, app = random.Random(1), RowsApp()
    async with app.run_test(size=(20, 30)) as pilot:
        view = app.query_one(Rows)
        bar, total, top = view.vertical_scrollbar, 10, 0
        for _ in range(150):
            total = rng.choice((total + rng.randint(0, 40), rng.randint(1, 5_000), 1_000_000))
            top = rng.choice((min(top + 3, max(0, total - 30)), rng.randint(0, max(0, total - 30))))
            view.update_scroll_bar(19, 30, top, total)
            await pilot.pause()
            seen, told = looks(bar), (bar.window_virtual_size, bar.window_size, bar.position)
            bar.refresh()
            await pilot.pause()
            assert looks(bar) == seen, told
