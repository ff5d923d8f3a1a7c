"""Finding and reading by keys as a terminal sends them, without colors, too."""

from __future__ import annotations

import pytest

from rolling_chat.messages import Message
from tests.support.terminal import Terminal
from tests.terminal.conftest import Desk

CTRL_F, F6, SHIFT_TAB = "\x06", "\x1b[17~", "\x1b[Z"
ALT_UP, ALT_DOWN, ALT_SHIFT_UP, ALT_P = "\x1b[1;3A", "\x1b[1;3B", "\x1b[1;4A", "\x1bp"
SHIFT_DOWN, SHIFT_END = "\x1b[1;2B", "\x1b[1;2F"


def talked(desk: Desk, *, columns: int = 80, rows: int = 24, **environ: str) -> Terminal:
    """Twelve turns, shown at their end."""
    said = []
    for turn in range(12):
        said.append(Message("user", f"question {turn}"))
        said.append(Message("assistant", "\n\n".join(f"turn {turn}, part {part}." for part in range(4))))
    desk.remember(*said)
    terminal = desk.open("--continue", columns=columns, rows=rows, **environ)
    terminal.see("turn 11, part 3.", "rolling")
    return terminal


def attributes(terminal: Terminal, text: str) -> set[str]:
    """How the first character of a text on the screen is drawn."""
    row = next(at for at, line in enumerate(terminal.lines) if text in line)
    cell = terminal._screen.buffer[row][terminal.lines[row].index(text)]
    return {name for name in ("reverse", "underscore", "bold") if getattr(cell, name)}


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 12)])
def test_hits_are_told_apart_without_colors(desk: Desk, columns: int, rows: int) -> None:
    terminal = talked(desk, columns=columns, rows=rows, NO_COLOR="1")
    terminal.type(CTRL_F + "TURN 3, part 2")
    terminal.see("find: TURN 3, part 2", "1 of 1", "turn 3, part 2.")
    terminal.wait_until(lambda: "reverse" in attributes(terminal, "turn 3, part 2"), "it is not marked")
    terminal.type("\x7f" * 3)
    terminal.see("4 of 4")
    terminal.type("\x1b[A")
    terminal.see("3 of 4")
    terminal.wait_until(lambda: "reverse" in attributes(terminal, "turn 3, part 2"), "it did not move")
    terminal.wait_until(
        lambda: "underscore" in attributes(terminal, "turn 3, part 3"), "the other hits are not marked"
    )
    terminal.type("\x1b")
    terminal.wait_until(lambda: "find:" not in terminal.text, "it did not close")
    assert "turn 3, part 2" in terminal.text
    terminal.wait_until(lambda: not attributes(terminal, "turn 3, part 2"), "the marks stay")
    terminal.type("go on")
    terminal.see("❯ go on")


def test_the_cursor_is_seen_without_colors_and_selects(desk: Desk) -> None:
    terminal = talked(desk, NO_COLOR="1")
    terminal.type(F6)
    terminal.see("esc back")
    terminal.wait_until(lambda: "reverse" in attributes(terminal, "turn 11, part 3"), "no cursor is seen")
    terminal.type("p")
    terminal.wait_until(lambda: "reverse" in attributes(terminal, "turn 11, part 0"), "it did not move")
    terminal.type(SHIFT_DOWN + SHIFT_DOWN + SHIFT_END + "y")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    assert terminal.copied == ["turn 11, part 0.\n\nturn 11, part 1."]
    terminal.see("Copied 34 characters.")
    terminal.type("hello")
    terminal.see("❯ hello", "enter send")


def test_keys_go_from_message_to_message_from_the_prompt(desk: Desk) -> None:
    terminal = talked(desk)
    terminal.type(ALT_UP)
    terminal.see("ctrl+end newest")
    terminal.type(ALT_SHIFT_UP + ALT_P)
    terminal.wait_until(
        lambda: terminal.lines[1].strip() == "❯ question 8", "alt+shift+up and alt+p did not move"
    )
    terminal.type(ALT_DOWN)
    terminal.wait_until(lambda: terminal.lines[1].strip() == "turn 8, part 0.", "alt+down did not move")
