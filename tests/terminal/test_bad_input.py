"""What no keyboard sends: wrong bytes, replies, mouse events outside the window."""

from __future__ import annotations

import pytest

from tests.terminal.conftest import Desk

_BYTES = b"\xe9\x1b[M \xe0\xf0\x1b[1114112;1u\x1b[99999999999999u\x1b[48;99999;99999;1;1t\x9b"
_REPLY = b"\x1bP1+r/quit\r/quit\r\x1b\\\x1b]11;rgb:0/0/0\r\x07\x1b[?62;22c"
_MOUSE = b"\x1b[<0;121;20M\x1b[<0;121;20m\x1b[<0;20;99M\x1b[<0;20;99m"


@pytest.mark.parametrize("sent", [_BYTES, _REPLY, _MOUSE], ids=["bytes", "reply", "mouse"])
def test_what_is_typed_afterwards_is_in_the_prompt_box(desk: Desk, sent: bytes) -> None:
    terminal = desk.open(columns=100, rows=30)
    terminal.see("rolling: off")
    terminal.type("before")
    terminal.see("❯ before")
    terminal.send(sent)
    terminal.type("after")
    terminal.see("❯ before", "after")
    assert "ctrl+q quit" in terminal.text
    assert "/quit" not in terminal.text
