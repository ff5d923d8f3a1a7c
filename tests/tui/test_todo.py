"""The to-do list above the prompt box: as long as there is one, and as long as the terminal has room."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.tui.widgets.todo_rows import TodoRows
from tests.support.tui import calls, idle, make_app, make_chat, reads, says, screen_of, type_line, wait_until


async def test_the_list_stands_above_the_box_and_folds_where_there_are_few_rows(tmp_path: Path) -> None:
    items = ["[x] one", "[>] two", "[ ] three"]
    chat = make_chat(tmp_path, calls("todo", items=items), says("working on it"), says("more"))
    async with make_app(chat, tmp_path).run_test(size=(80, 40)) as pilot:
        await type_line(pilot, "go")
        await reads(pilot, "working on it", "todo 1/3 done: two")
        await idle(pilot)
        rows = screen_of(pilot).query_one(TodoRows)
        await wait_until(pilot, lambda: rows.size.height == 3)
        await pilot.resize_terminal(80, 24)
        await wait_until(pilot, lambda: rows.size.height == 1)
        assert "two  1/3 done" in str(rows.render())
        await pilot.resize_terminal(80, 14)
        await wait_until(pilot, lambda: not rows.display)
        await pilot.resize_terminal(80, 40)
        chat.session.history.undo()
        screen_of(pilot).load()
        await wait_until(pilot, lambda: not rows.display)
