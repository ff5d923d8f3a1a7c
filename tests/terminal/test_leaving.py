"""Ways to leave: by a signal, for a while, and when the terminal goes first."""

from __future__ import annotations

import signal

import pytest

from tests.terminal.conftest import Desk

_BACK_TO_THE_SHELLS_SCREEN = b"\x1b[?1049l"


def test_ctrl_z_goes_back_to_the_shell_and_the_draft_is_there_on_return(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type("half a thought")
    terminal.see("❯ half a thought")
    terminal.type("\x1a")
    terminal.wait_until(lambda: _BACK_TO_THE_SHELLS_SCREEN in terminal.raw, "never went to the shell")
    terminal.wait_until_stopped()
    terminal.raw.clear()
    terminal.signal(signal.SIGCONT)
    terminal.wait_until(lambda: b"half a thought" in terminal.raw, "never came back")
    terminal.type(" and the rest")
    terminal.see("❯ half a thought and the rest")


def test_a_polite_kill_leaves_the_terminal_as_it_was(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.signal(signal.SIGTERM)
    assert terminal.leave() == 0
    assert _BACK_TO_THE_SHELLS_SCREEN in terminal.raw


@pytest.mark.parametrize("ignoring_hangup", [False, True])
def test_a_terminal_that_vanishes_takes_the_program_with_it(desk: Desk, ignoring_hangup: bool) -> None:
    terminal = desk.open(ignoring_hangup=ignoring_hangup)
    terminal.see("rolling: off")
    terminal.vanish()
