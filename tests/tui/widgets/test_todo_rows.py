from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from rolling_chat.todo_list import parse_items
from rolling_chat.tui.widgets.todo_rows import TodoRows

LONG = [f"[x] done {at}" for at in range(4)] + ["[>] now"] + [f"[ ] later {at}" for at in range(6)]


class Rows(App[None]):
    def compose(self) -> ComposeResult:
        yield TodoRows()


@pytest.mark.parametrize(
    ("items", "height", "rows"),
    [
        (LONG, 50, ["✓ done 3  4/11 done", "▸ now", "○ later 0", "○ later 1", "○ later 2"]),
        (LONG, 24, ["▸ now  4/11 done"]),
        (["[x] a", "[ ] b"], 50, ["✓ a", "○ b"]),
        (["[x] a", "[x] b"], 50, ["✓ 2/2 done"]),
        (["[>] " + "long " * 40], 24, ["▸ long long long lon…  0/1 done"]),
        (["[ ] tab\there [red]x[/red]"], 24, ["○ tab here [red]x[/r…  0/1 done"]),
    ],
)
async def test_the_rows_around_what_is_done_now_are_shown(
    items: list[str], height: int, rows: list[str]
) -> None:
    app = Rows()
    async with app.run_test(size=(33, 60)) as pilot:
        widget = app.query_one(TodoRows)
        widget.show(parse_items(items), height)
        await pilot.pause()
        assert str(widget.render()).split("\n") == rows


async def test_nothing_is_shown_without_a_list() -> None:
    app = Rows()
    async with app.run_test(size=(33, 60)) as pilot:
        widget = app.query_one(TodoRows)
        assert not widget.display
        widget.show(parse_items(["a"]), 50)
        await pilot.pause()
        assert widget.display
        widget.show(None, 50)
        await pilot.pause()
        assert not widget.display
