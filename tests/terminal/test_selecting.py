"""Selecting with the mouse, as a terminal reports it, and copying with ctrl+c."""

from __future__ import annotations

import re

import pytest

from rolling_chat.messages import Message
from tests.support.terminal import Terminal
from tests.terminal.conftest import SLOW, Desk

_ASKED, _FACT = "What does the lexer drop?", "The lexer drops tabs in column eight."


def place_of(terminal: Terminal, text: str) -> tuple[int, int]:
    """The last place where `text` stands on the screen: column and row from 1, as the mouse reports."""
    row = max(number for number, line in enumerate(terminal.padded_lines) if text in line)
    return terminal.padded_lines[row].index(text) + 1, row + 1


def drag(terminal: Terminal, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press, move, release."""
    (column, row), (last_column, last_row) = start, end
    terminal.type(f"\x1b[<0;{column};{row}M")
    terminal.type(f"\x1b[<32;{last_column - 1};{last_row}M\x1b[<32;{last_column};{last_row}M")
    terminal.type(f"\x1b[<0;{last_column};{last_row}m")


def first_fact(terminal: Terminal) -> int:
    """The number of the topmost fact on the screen."""
    return min(map(int, re.findall(r"fact(\d+) is", terminal.text)))


def talk(desk: Desk) -> Terminal:
    """A question and its answer."""
    desk.remember(Message("user", _ASKED), Message("assistant", _FACT))
    terminal = desk.open("--continue")
    terminal.see("rolling: off", _ASKED, _FACT)
    return terminal


def test_a_selection_made_with_the_mouse_is_copied_by_ctrl_c(desk: Desk) -> None:
    terminal = talk(desk)
    column, row = place_of(terminal, _FACT)
    drag(terminal, (column, row), (column + len(_FACT), row))
    terminal.type("\x03")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    assert terminal.copied == [_FACT]
    # the selection is gone: the next one is no copy
    terminal.type("\x03")
    terminal.see("ctrl+c again quits")
    assert len(terminal.copied) == 1


def test_a_selection_from_one_message_into_the_next_holds_both(desk: Desk) -> None:
    terminal = talk(desk)
    start, end = place_of(terminal, _ASKED), place_of(terminal, _FACT)
    assert start[1] < end[1]
    drag(terminal, start, (end[0] + len(_FACT), end[1]))
    terminal.type("\x03")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    (copied,) = terminal.copied
    assert copied.startswith(_ASKED)
    assert copied.endswith(_FACT)


def test_a_selection_over_the_edge_scrolls_and_takes_what_comes(desk: Desk) -> None:
    facts = "\n\n".join(f"fact{number} is {number}." for number in range(60))
    desk.remember(Message("user", _ASKED), Message("assistant", facts))
    terminal = desk.open("--continue", columns=80, rows=20)
    terminal.see("rolling: off", "fact59 is 59.")
    column, row = place_of(terminal, "fact58 is")
    terminal.type(f"\x1b[<0;{column};{row}M")
    for above in range(row - 1, 0, -1):  # up to the title, which is none of the transcript
        terminal.type(f"\x1b[<32;{column};{above}M")
    terminal.wait_until(lambda: first_fact(terminal) <= 30, "it does not scroll")
    terminal.type(f"\x1b[<0;{column};1m\x03")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    facts_taken = [line for line in terminal.copied[0].splitlines() if line]
    assert len(facts_taken) >= 28
    assert facts_taken[-2] == "fact57 is 57."
    # the question as well, where the mouse is let go late
    assert all(line in [_ASKED, *facts.splitlines()] for line in facts_taken[:-1])


@pytest.mark.slow
def test_a_selection_stays_on_its_text_while_an_answer_streams(desk: Desk) -> None:
    desk.write_facts()
    terminal = desk.open(columns=90, rows=24, ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    terminal.see("rolling: off")
    terminal.say("read facts.txt")
    terminal.see("fact3 is 3,", "answering")
    column, row = place_of(terminal, "read facts.txt")
    drag(terminal, (column, row), (column + len("read facts.tx"), row))
    terminal.see("fact5 is 5,")
    terminal.type("\x03")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    assert terminal.copied == ["read facts.txt"]
