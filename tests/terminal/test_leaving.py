"""Ways to leave: by a signal, for a while, and when the terminal goes first."""

from __future__ import annotations

import signal

import pytest

from rolling_chat.messages import Message
from tests.support.answers import hostile_answers
from tests.terminal.conftest import Desk

_IGNORING_HANGUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
# what a fault anywhere in the screen's code comes to
_BREAKING_ON_QUIT = """
from rolling_chat.tui.app import RollingChatApp
async def broken(app):
    raise RuntimeError("this was not foreseen")
RollingChatApp.action_quit = broken
"""
_PAGE_UP, _CTRL_END = "\x1b[5~", "\x1b[1;5F"
_BACK_TO_THE_SHELLS_SCREEN = b"\x1b[?1049l"


def test_ctrl_z_goes_back_to_the_shell_and_all_that_was_on_the_screen_is_there_on_return(desk: Desk) -> None:
    desk.remember(Message("user", "hello"), Message("assistant", "Hello yourself."))
    terminal = desk.open("--continue")
    terminal.see("rolling: off", "Hello yourself.")
    terminal.type("half a thought")
    before = terminal.see("❯ half a thought", "this message +")
    terminal.type("\x1a")
    terminal.wait_until(lambda: _BACK_TO_THE_SHELLS_SCREEN in terminal.raw, "never went to the shell")
    terminal.wait_until_stopped()
    terminal.signal(signal.SIGCONT)
    terminal.wait_until(lambda: terminal.text == before, "not all of it came back")
    terminal.type(" and the rest")
    terminal.see("❯ half a thought and the rest")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_polite_kill_leaves_the_terminal_as_it_was(desk: Desk, number: signal.Signals) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.signal(number)
    assert terminal.leave() == 0
    assert _BACK_TO_THE_SHELLS_SCREEN in terminal.raw


@pytest.mark.parametrize("first", ["", _BREAKING_ON_QUIT], ids=["quit", "fault"])
def test_quitting_and_a_fault_leave_the_terminal_as_it_was_found(desk: Desk, first: str) -> None:
    terminal = desk.open(first=first)
    modes, settings = terminal.modes_before, terminal.line_settings_before
    terminal.see("rolling: off")
    assert terminal.modes - modes >= {1049, 1000, 1004, 1006, 2004}
    assert terminal.line_settings != settings
    terminal.type("\x11")  # ctrl+q
    # read to the end of it: what it says on leaving comes after the terminal is the shell's again
    assert terminal.leave() == (1 if first else 0)
    assert terminal.modes == modes
    assert terminal.line_settings == settings
    assert terminal.raw.count(b"\x1b[<u") == terminal.raw.count(b"\x1b[>") >= 1
    assert ("a fault of the program (RuntimeError)" in terminal.text) == bool(first)
    assert "Traceback" not in terminal.text


def test_a_hostile_answer_moves_nothing_of_the_terminals(desk: Desk) -> None:
    answers = [Message("assistant", text) for text in hostile_answers(400).values()]
    said = [one for answer in answers for one in (Message("user", "Go on."), answer)]
    desk.remember(
        Message("user", "The beginning."),
        *said[1:],
        Message("user", "And?"),
        Message("assistant", "That is all."),
    )
    terminal = desk.open("--continue", rows=60)
    modes, settings = terminal.modes_before, terminal.line_settings_before
    terminal.see("rolling: off", "That is all.")
    while_open = terminal.modes
    for _ in answers:
        terminal.type(_PAGE_UP)
    terminal.see("❯ The beginning.")
    terminal.type(_CTRL_END)
    terminal.see("That is all.")
    assert terminal.modes == while_open
    assert terminal.copied == []
    # as text, behind a sign for the escape, it may well be painted
    assert not any(opening + b"0;title" in terminal.raw for opening in (b"\x1b]", b"\x9d"))
    terminal.say("/quit")
    assert terminal.leave() == 0
    assert terminal.modes == modes
    assert terminal.line_settings == settings


@pytest.mark.parametrize("first", ["", _IGNORING_HANGUP], ids=["plain", "ignoring the hangup"])
def test_a_terminal_that_vanishes_takes_the_program_with_it(desk: Desk, first: str) -> None:
    terminal = desk.open(first=first)
    terminal.see("rolling: off")
    terminal.vanish()
