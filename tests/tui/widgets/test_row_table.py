"""The table of which only the rows in sight are made."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from rolling_chat.commands import Column, Table
from rolling_chat.lazily import Lazily
from rolling_chat.tui.widgets.row_table import RowTable, column_widths
from tests.support.tui import wait_until

COLUMNS = (Column("id", right=True), Column("what"), Column("begins"))
MANY = 100_000


class TableApp(App[None]):
    """A table, and which of its rows were made."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.made: set[int] = set()
        self.moved: list[int] = []
        self.table = RowTable(self.rows(count))

    def rows(self, count: int) -> Table:
        def make(at: int) -> tuple[str, ...]:
            self.made.add(at)
            return (f"r{count - at}", "日本", f"text {at} \x1b[31m" + "long " * 20)

        return Table(COLUMNS, Lazily(count, make))

    def compose(self) -> ComposeResult:
        yield self.table

    def on_row_table_moved(self, message: RowTable.Moved) -> None:
        self.moved.append(message.table.cursor_row)


def lines(pilot: Pilot[None]) -> list[str]:
    table = pilot.app.query_one(RowTable)
    return [table.render_line(y).text for y in range(table.size.height)]


async def test_of_many_rows_few_are_made_wherever_one_goes() -> None:
    app = TableApp(MANY)
    async with app.run_test(size=(60, 12)) as pilot:
        app.table.focus()
        await wait_until(pilot, lambda: "r100000" in lines(pilot)[1])
        keys = {"down": 1, "up": 0, "pagedown": 11, "end": MANY - 1, "pageup": MANY - 12, "home": 0}
        for key, row in keys.items():
            await pilot.press(key)
            assert app.table.cursor_row == row
            begins = f"r{MANY - row} "
            await wait_until(pilot, lambda begins=begins: any(begins in line for line in lines(pilot)[1:]))
            assert lines(pilot)[0].split() == ["id", "what", "begins"]
        assert app.moved == [1, 0, 11, MANY - 1, MANY - 12, 0]
        assert len(app.made) < 700


async def test_a_click_puts_the_cursor_on_a_row_and_none_on_the_header() -> None:
    app = TableApp(50)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.click(RowTable, offset=(5, 4))
        assert app.table.cursor_row == 3
        await pilot.click(RowTable, offset=(5, 0))
        assert app.table.cursor_row == 3


async def test_another_table_keeps_the_cursor_where_there_is_a_row_for_it() -> None:
    app = TableApp(50)
    async with app.run_test(size=(60, 12)) as pilot:
        app.table.move_cursor(30)
        app.table.show(app.rows(60))
        assert app.table.cursor_row == 30
        app.table.show(app.rows(5))
        await wait_until(pilot, lambda: "r1 " in lines(pilot)[5])
        assert app.table.cursor_row == 4
        app.table.show(app.rows(0))
        app.table.action_move(1)
        await wait_until(pilot, lambda: not "".join(lines(pilot)[1:]).strip())


@pytest.mark.parametrize("width", [20, 33, 60, 160])
async def test_every_line_is_as_wide_as_the_screen_and_steers_nothing(width: int) -> None:
    app = TableApp(30)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.resize_terminal(width, 12)
        await wait_until(pilot, lambda: {cell_len(line) for line in lines(pilot)} == {width - 1})
        assert not any("\x1b" in line for line in lines(pilot))


def test_the_last_column_gives_way_first_then_the_widest() -> None:
    table = Table(COLUMNS, [("r1", "w" * 30, "b" * 50)])
    assert column_widths(table, 200) == [2, 30, 50]
    assert column_widths(table, 80) == [2, 30, 42]
    assert column_widths(table, 50) == [2, 21, 21]
    assert column_widths(table, 1) == [2, 8, 8]
