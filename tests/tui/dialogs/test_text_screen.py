"""A text of any length on a screen of its own."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len

from rolling_chat.tui.dialogs.text_screen import TextScreen, folded
from tests.support.tui import make_app, make_chat, reads, says, screen_of, shown, type_line, wait_until


async def test_recall_shows_a_message_whole_and_esc_goes_back(tmp_path: Path) -> None:
    text = (
        "\n".join(f"line {number} \x1b[31mred [b]bold[/b]" for number in range(1, 200))
        + "\n"
        + "wide 中" * 60
    )
    app = make_app(make_chat(tmp_path, says(text)), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await type_line(pilot, "go")
        await wait_until(pilot, lambda: not screen_of(pilot).chat.busy)
        await type_line(pilot, "/recall r2")
        await reads(pilot, "line 1 ␛[31mred [b]bold[/b]", "r2 · assistant")
        await pilot.press("end")
        await wait_until(pilot, lambda: shown(pilot).count("wide 中") > 5)
        await pilot.press("escape")
        await wait_until(pilot, lambda: not isinstance(app.screen, TextScreen))


def test_every_character_is_there_and_no_line_is_too_wide() -> None:
    for text in ("", "a\n\nb", "x" * 95, "中文" * 40, "é" * 31 + "\n" + "😀" * 21):
        lines = list(folded(text, 10))
        assert "".join(lines) == text.replace("\n", "")
        assert all(cell_len(line) <= 10 for line in lines)
    assert list(folded("a\n\nb", 10)) == ["a", "", "b"]


async def test_empty_lines_are_shown(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(60, 20)) as pilot:
        pilot.app.push_screen(TextScreen("Text", "one\n\n\ntwo"))
        await reads(pilot, "two")
        rows = [row.strip("│ ") for row in shown(pilot).splitlines()]
        assert rows.index("two") - rows.index("one") == 3
