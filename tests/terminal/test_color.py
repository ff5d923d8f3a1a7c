"""What colors reach the terminal."""

from __future__ import annotations

import re

from rolling_chat.messages import Message
from tests.terminal.conftest import Desk

_SGR = re.compile(rb"\x1b\[([\d;:]*)m")


def colors(raw: bytes) -> set[bytes]:
    """The color parameters of every escape sequence that sets one."""
    found = set()
    for match in _SGR.finditer(raw):
        parts = match[1].replace(b":", b";").split(b";")
        found |= {part for part in parts if re.fullmatch(rb"3[0-8]|4[0-8]|9[0-7]|10[0-7]", part)}
    return found


def test_no_color_means_none(desk: Desk) -> None:
    desk.remember(Message("user", "hello"), Message("assistant", "# Hello\n\n`yourself`"))
    terminal = desk.open("--continue", NO_COLOR="1")
    terminal.see("rolling: off", "yourself")
    terminal.type("/")
    terminal.see("❯ /rolling-context")
    terminal.type("\x03/theme\r")  # faster than the list of commands follows
    terminal.see("daylight")
    assert colors(bytes(terminal.raw)) == set()


def test_a_terminal_of_sixteen_colors_gets_no_others(desk: Desk) -> None:
    terminal = desk.open(TERM="xterm", COLORTERM="")
    terminal.see("rolling: off")
    assert colors(bytes(terminal.raw)) - {b"38", b"48"}
    assert not {b"38", b"48"} & colors(bytes(terminal.raw))
