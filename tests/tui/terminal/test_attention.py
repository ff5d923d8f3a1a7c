"""The user is called back when the terminal is not being looked at, in the way that it knows."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tui.terminal.attention import Attention, notification

TERMINALS = [
    {"TERM": "xterm-kitty"},
    {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"},
    {"TERM": "foot"},
    {"TERM": "xterm-256color"},
]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;;a: b; c\x1b\\"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "\x1b]9;a: b; c\a"),
        ({"TERM": "foot-extra"}, "\x1b]777;notify;Rolling Chat;a: b, c\a"),
        ({"TERM": "xterm-256color"}, "\a"),
        ({}, "\a"),
        # its sequences would stay in tmux, where the bell marks the window
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-0/default,1,0"}, "\a"),
        ({"TERM": "screen.xterm-256color"}, "\a"),
    ],
)
def test_a_terminal_gets_the_sequence_that_it_knows(environ: dict[str, str], wanted: str) -> None:
    assert notification("a: b; c", environ) == wanted


@given(line=st.text(), environ=st.sampled_from(TERMINALS))
def test_nothing_in_a_title_can_end_the_sequence(line: str, environ: dict[str, str]) -> None:
    said = notification(line, environ)
    inner = said.removeprefix("\x1b]").removesuffix("\x1b\\").removesuffix("\a")
    assert not any(unicodedata.category(one) == "Cc" for one in inner)
    assert len(inner) < 160


@pytest.mark.parametrize(
    ("has_focus", "idle_seconds", "is_called"),
    [(True, 999.0, False), (False, 0.0, True), (None, 1.0, False), (None, 60.0, True)],
)
def test_only_who_looks_elsewhere_is_called(
    has_focus: bool | None, idle_seconds: float, is_called: bool
) -> None:
    written: list[str] = []
    Attention(written.append, {}, "auto").call("x", has_focus=has_focus, idle_seconds=idle_seconds)
    assert written == (["\a"] if is_called else [])


def test_off_calls_nobody_and_bell_only_rings() -> None:
    written: list[str] = []
    for way in ("off", "bell"):
        Attention(written.append, {"TERM": "xterm-kitty"}, way).call("x", has_focus=False, idle_seconds=0)
    assert written == ["\a"]
