"""`/context` as the terminal shows it."""

from __future__ import annotations

from rolling_chat.messages import Message
from tests.terminal.conftest import Desk

UP, END, CLICK = "\x1b[A", "\x1b[F", "\x1b[<0;20;{row}M\x1b[<0;20;{row}m"


def test_every_message_is_there_at_once_and_what_is_done_to_one_is_seen(desk: Desk) -> None:
    said = [(Message("user", f"question {n}"), Message("assistant", f"answer {n}")) for n in range(1, 51)]
    desk.remember(*(message for turn in said for message in turn))
    terminal = desk.open("--continue", columns=90, rows=30)
    terminal.see("rolling: off")
    terminal.type("/context\r")
    terminal.see("The next request", "system prompt", "r100  assistant", "answer 50", "r99  user")
    terminal.type(END)
    terminal.see("r1  user", "question 1")
    terminal.type(UP + "p")
    terminal.see("Pin r1", "p or enter does it")
    terminal.type("p")
    terminal.see("◆ r1")
    terminal.resize_blank(60, 22)
    terminal.see("◆ r1", "esc close")
    row = next(at for at, line in enumerate(terminal.text.splitlines(), 1) if " r2 " in line)
    terminal.type(CLICK.format(row=row) + "x")
    terminal.see("Exclude r2")
    terminal.type("\x1b")
    terminal.wait_until(lambda: "Exclude r2" not in terminal.text, "the offer stayed")
    terminal.type("\x1b")
    terminal.see("Ask anything")
