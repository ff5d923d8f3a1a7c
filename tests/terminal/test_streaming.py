"""Reading while an answer streams in."""

from __future__ import annotations

import re

import pytest

from tests.support.terminal import Terminal
from tests.terminal.conftest import SLOW, Desk

PAGE_UP, CTRL_END = "\x1b[5~", "\x1b[1;5F"
_HEADER, _BELOW = 1, 6  # rows around the transcript: title; status, gauge, prompt box, keys


def transcript_rows(terminal: Terminal) -> list[str]:
    """The rows of the transcript, without its scroll bar and the mark of a growing answer."""
    shown = (line[:-1].replace("▍", " ") for line in terminal.padded_lines[_HEADER:-_BELOW])
    return [line.rstrip().removesuffix("↓ new below").rstrip() for line in shown]


def seconds_passed(terminal: Terminal) -> int:
    """How long the answer has been coming, as the status line says."""
    found = re.search(r"answering · (\d+) s", terminal.text)
    return int(found[1]) if found else -1


@pytest.mark.slow
def test_what_is_read_stays_put_while_the_answer_grows_and_the_window_changes(desk: Desk) -> None:
    desk.write_facts()
    terminal = desk.open(columns=90, rows=18, ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    terminal.see("rolling: off")
    for _ in range(4):
        terminal.type("/rolling-context status\r")
    terminal.see("everything is sent")
    terminal.say("read facts.txt")
    terminal.see("fact2 is 2,", "answering")

    terminal.type(PAGE_UP)
    terminal.see("ctrl+end newest")
    assert "fact2" not in terminal.text
    rows, began = transcript_rows(terminal), seconds_passed(terminal)
    terminal.wait_until(lambda: seconds_passed(terminal) > began + 1, "the answer never went on")
    assert transcript_rows(terminal) == rows

    # the text is wrapped anew, so the row may begin earlier; what was first is still in the first row
    first = next(row.split()[0] for row in rows if row.strip())
    terminal.resize_blank(64, 18)
    terminal.wait_until(
        lambda: first in terminal.lines[_HEADER] and "╮" in terminal.lines[-4],
        f"another row than that of {first!r} stands at the top",
    )
    drawn = seconds_passed(terminal)
    terminal.wait_until(lambda: seconds_passed(terminal) > drawn, "the answer never went on")
    rows, began = transcript_rows(terminal), seconds_passed(terminal)
    assert first in rows[0]
    terminal.wait_until(lambda: seconds_passed(terminal) > began, "the answer never went on")
    assert transcript_rows(terminal) == rows

    terminal.type(CTRL_END)
    terminal.see("fact3 is 3,", "answering")
    terminal.wait_until(lambda: "ctrl+end newest" not in terminal.text, "it does not follow again")
