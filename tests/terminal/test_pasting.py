"""Bracketed paste."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.terminal.conftest import Desk


def pasted(text: str) -> str:
    """As a terminal sends it: a line ends with what Enter sends."""
    return "\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~"


def said(desk: Desk) -> list[str]:
    """The user's messages of the newest session, as they are stored."""
    with closing(desk.store) as store:
        newest = store.newest(str(desk.folder.resolve()))
        return [] if newest is None else [one.text for one in store.branch(newest.id) if one.role == "user"]


def test_a_few_pasted_lines_stand_in_the_box_and_are_sent_only_by_enter(desk: Desk) -> None:
    lines = [f"line {number} of what was pasted" for number in range(4)]
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type(pasted("\n".join(lines)))
    terminal.see(*lines)
    assert said(desk) == []
    terminal.type("\r")
    terminal.see_either("waiting for demo/offline", "done in")
    terminal.see("❯ line 0 of what was pasted", lines[-1])
    terminal.wait_until(lambda: bool(said(desk)), "nothing was sent")
    assert said(desk) == ["\n".join(lines)]


def test_what_is_typed_is_sent_to_the_letter_joiners_and_wide_spaces_too(desk: Desk) -> None:
    text = "so می\u200cخواهم 👩\u200d👧 and 全角\u3000空白 and a\u00a0b typed"
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type(f"{text}\r")
    terminal.wait_until(lambda: bool(said(desk)), "nothing was sent")
    assert said(desk) == [text]


def test_hundreds_of_pasted_lines_are_sent_whole_with_what_is_typed_around_them(desk: Desk) -> None:
    lines = [f"line {number}" for number in range(300)]
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type("before ")
    terminal.see("❯ before")
    terminal.type(pasted("\n".join(lines)) + " after")
    terminal.see(" after")
    terminal.type("\r")
    terminal.see_either("waiting for demo/offline", "done in")
    terminal.wait_until(lambda: bool(said(desk)), "nothing was sent")
    (message,) = said(desk)
    assert "\n".join(lines) in message
    assert (
        message.index("before")
        < message.index("line 0")
        < message.index("line 299")
        < message.rindex("after")
    )


def test_what_is_pasted_runs_no_key_and_no_command(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type(pasted("/quit\n\x11\x03harmless"))
    terminal.see("harmless", "rolling: off")
    terminal.type("!")
    terminal.see("harmless!")
    assert said(desk) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\x1b\rharmless", marks=pytest.mark.slow),
        pytest.param("\x1b[31mred\x1b[0m\r\nrm -rf harmless", marks=pytest.mark.slow),
        "\x1b[200~\x1b\x1b\r\x1b[13uharmless\x1b",
    ],
)
def test_a_paste_with_escape_sequences_in_it_presses_no_key(desk: Desk, text: str) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    paste = f"\x1b[200~{text}\x1b[201~"
    for part in (paste[:-3], paste[-3:]):
        terminal.type(part)
    terminal.see("harmless")
    terminal.type("!")
    terminal.see("harmless!")
    assert said(desk) == []
