"""A screen that no longer turns: the log says where it is, and a signal ends it in order."""

from __future__ import annotations

import signal

import pytest

from rolling_chat.settings.paths import find_paths
from tests.support.program import program_environment
from tests.terminal.conftest import Desk

_F1 = "\x1bOP"
# what f1 does then, in the thread that turns the loop
_STALL = """
import re, time
from rolling_chat.tui.terminal import watchdog
watchdog.STALL = 1.0
from rolling_chat.tui.screens.chat_screen import ChatScreen
def spins():
    while True: pass
def stalls_here(screen):
    open("stalled", "w").close()
    {how}
ChatScreen.action_help = stalls_here
"""
_SPINS, _BLOCKS = "spins()", "time.sleep(10_000)"
_KEEPS_THE_INTERPRETER = "re.match('(a+)+$', 'a' * 99 + 'b')"


def _log(desk: Desk) -> str:
    file = find_paths(program_environment(desk.home)).log_file
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    ("how", "number"), [(_SPINS, signal.SIGTERM), (_BLOCKS, signal.SIGHUP)], ids=["spins", "blocks"]
)
def test_a_stall_is_logged_once_and_a_signal_ends_it_with_the_terminal_restored(
    desk: Desk, how: str, number: signal.Signals
) -> None:
    terminal = desk.open(first=_STALL.format(how=how))
    modes, settings = terminal.modes_before, terminal.line_settings_before
    terminal.see("rolling: off")
    terminal.type(_F1)
    terminal.wait_until(lambda: "in stalls_here" in _log(desk), "the stall was not logged")
    terminal.signal(number)
    assert terminal.leave() == 128 + number
    assert terminal.modes == modes
    assert terminal.line_settings == settings
    assert _log(desk).count("in stalls_here") == 1


def test_a_signal_ends_what_keeps_the_whole_interpreter(desk: Desk) -> None:
    terminal = desk.open(first=_STALL.format(how=_KEEPS_THE_INTERPRETER))
    modes, settings = terminal.modes_before, terminal.line_settings_before
    terminal.see("rolling: off")
    terminal.type(_F1)
    terminal.wait_until((desk.folder / "stalled").exists, "f1 did not stall it")
    terminal.signal(signal.SIGTERM)
    assert terminal.leave() == 128 + signal.SIGTERM
    terminal.drain()
    assert terminal.modes == modes
    assert terminal.line_settings == settings
    assert "in stalls_here" in _log(desk)
