"""Somebody who looks at another window is called back."""

from __future__ import annotations

from tests.terminal.conftest import Desk

_LOOKED_AWAY, _BACK = "\x1b[O", "\x1b[I"
_NOTIFIED = b"\x1b]9;"


def test_the_end_of_a_turn_is_told_to_who_looks_elsewhere_and_to_nobody_else(desk: Desk) -> None:
    terminal = desk.open(TERM_PROGRAM="WezTerm")
    terminal.see("rolling: off")
    terminal.type("hello\r")
    terminal.see("done in")
    assert _NOTIFIED not in terminal.raw
    terminal.type(_LOOKED_AWAY + "and again\r" + _LOOKED_AWAY)
    terminal.wait_until(lambda: _NOTIFIED in terminal.raw, "nobody was told")
    assert b"the turn is over\a" in terminal.raw
    assert terminal.raw.count(_NOTIFIED) == 1


def test_a_question_is_told_to_who_looks_elsewhere(desk: Desk) -> None:
    terminal = desk.open(TERM_PROGRAM="WezTerm")
    terminal.see("rolling: off")
    terminal.type("run `echo hello`\r" + _LOOKED_AWAY)
    terminal.wait_until(lambda: b"a question waits for your answer\a" in terminal.raw, "nobody was told")
    terminal.see("echo hello")
