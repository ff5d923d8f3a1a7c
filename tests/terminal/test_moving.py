"""Page keys and the mouse wheel, as the terminal reports them."""

from __future__ import annotations

import re

import pytest

from rolling_chat.messages import Message
from tests.support.terminal import Terminal
from tests.terminal.conftest import SLOW, Desk

PAGE_UP, PAGE_DOWN, CTRL_HOME, CTRL_END = "\x1b[5~", "\x1b[6~", "\x1b[1;5H", "\x1b[1;5F"
WHEEL_UP, WHEEL_DOWN = "\x1b[<64;20;6M", "\x1b[<65;20;6M"
_BEGINS, _ENDS = "❯ What are the facts?", "fact19 is 19."


def answered(desk: Desk) -> Terminal:
    """A conversation of two screens, shown at its end."""
    facts = "\n\n".join(f"fact{number} is {number}." for number in range(20))
    desk.remember(Message("user", "What are the facts?"), Message("assistant", facts))
    terminal = desk.open("--continue", columns=90, rows=18)
    terminal.see("rolling: off", _ENDS)
    assert _BEGINS not in terminal.text
    return terminal


def first_fact(terminal: Terminal) -> int:
    """The number of the topmost fact on the screen, -1 where the question stands above it."""
    found = re.search(r"fact(\d+) is", terminal.text)
    return -1 if found is None or _BEGINS in terminal.text else int(found[1])


def another_second(terminal: Terminal) -> None:
    """Wait until the answer has gone on for more than a second."""

    def seconds() -> int:
        found = re.search(r"answering · (\d+) s", terminal.text)
        return int(found[1]) if found else -1

    began = seconds()
    terminal.wait_until(lambda: seconds() > began + 1, "the answer never went on")


def press(terminal: Terminal, key: str) -> None:
    """Turn the wheel and wait until that has moved something."""
    before = terminal.text
    terminal.type(key)
    terminal.wait_until(lambda: terminal.text != before, f"{key!r} moved nothing")


def test_page_keys_and_the_edges(desk: Desk) -> None:
    terminal = answered(desk)
    end = first_fact(terminal)
    terminal.type(PAGE_UP)
    terminal.wait_until(lambda: first_fact(terminal) < end, "page up did not move it")
    terminal.see("ctrl+end newest")
    terminal.type(PAGE_DOWN)
    terminal.wait_until(lambda: first_fact(terminal) == end, "page down did not move it back")
    terminal.type(CTRL_HOME)
    terminal.see(_BEGINS)
    terminal.type(CTRL_END)
    terminal.see(_ENDS)
    terminal.wait_until(lambda: "ctrl+end newest" not in terminal.text, "it does not follow again")


def test_the_wheel_goes_up_to_the_question_and_down_until_it_follows_again(desk: Desk) -> None:
    terminal = answered(desk)
    while _BEGINS not in terminal.text:
        press(terminal, WHEEL_UP)
    while _ENDS not in terminal.text:
        press(terminal, WHEEL_DOWN)
    terminal.wait_until(lambda: "ctrl+end newest" not in terminal.text, "it does not follow again")


@pytest.mark.slow
def test_the_wheel_takes_the_reader_off_a_growing_answer_and_leaves_them_there(desk: Desk) -> None:
    desk.write_facts()
    terminal = desk.open(columns=90, rows=14, ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    terminal.see("rolling: off")
    terminal.say("read facts.txt")
    terminal.see("fact5 is 5,", "answering")
    terminal.type(WHEEL_UP)
    terminal.see("ctrl+end newest")
    another_second(terminal)  # the whole screen is painted after the wheel
    facts = re.findall(r"fact\d+ is \d+,", terminal.text)
    assert facts
    another_second(terminal)
    assert re.findall(r"fact\d+ is \d+,", terminal.text)[: len(facts)] == facts
    # what is typed goes to the prompt, and does not move what is read
    terminal.type("typed while reading")
    terminal.see("❯ typed while reading")
    assert re.findall(r"fact\d+ is \d+,", terminal.text)[: len(facts)] == facts
