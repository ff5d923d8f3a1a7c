"""From the first key to a resumed session, as a person would see it."""

from __future__ import annotations

import re

from tests.support.terminal import Terminal
from tests.terminal.conftest import Desk


def tokens_on_gauge(terminal: Terminal) -> float:
    """The prompt's size as the gauge shows it, in tokens."""
    found = re.search(r"~?([\d.,]+)(k?) / 8\.2k", terminal.text)
    assert found, terminal.text
    return float(found.group(1).replace(",", "")) * (1_000 if found.group(2) else 1)


def say(terminal: Terminal, text: str) -> None:
    """Type a message, see it in the box, send it."""
    terminal.type(text)
    terminal.see(text)
    terminal.type("\r")


def test_type_stream_roll_quit_and_continue(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off", "demo/offline")
    before = tokens_on_gauge(terminal)
    say(terminal, "The parser lives in lexer.py. Where does the parser live?")
    terminal.see("done in")
    assert tokens_on_gauge(terminal) > before
    say(terminal, "/rolling-context")
    terminal.see("rolling: on")
    say(terminal, "/quit")
    assert terminal.leave() == 0
    resume = re.search(r"rolling-chat --resume (\w+)", terminal.text)
    assert resume, terminal.text

    again = desk.open("--continue")
    again.see("The parser lives in lexer.py.", "rolling: on")
    say(again, "/quit")
    assert again.leave() == 0

    resumed = desk.open("--resume", resume.group(1)[:4])
    resumed.see("The parser lives in lexer.py.", "rolling: on")


def test_a_command_runs_only_after_its_leave_is_given(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    say(terminal, "run `touch made-by-hand`")
    terminal.see("touch made-by-hand", "y once")
    assert not (desk.folder / "made-by-hand").exists()
    # keys meant for the prompt box approve nothing in the first moment, so leave is given until it is taken
    terminal.press_until("y", "✓ run_command")
    terminal.see("done in")
    assert (desk.folder / "made-by-hand").exists()


def test_kill_9_in_mid_answer_loses_nothing_that_was_painted(desk: Desk) -> None:
    terminal = desk.open(ROLLING_CHAT_OFFLINE_DELAY="25")
    terminal.see("rolling: off")
    words = " ".join(f"fact{number} is {number}." for number in range(120))
    (desk.folder / "facts.txt").write_text(words.replace(". ", ".\n"))
    say(terminal, "read facts.txt")
    terminal.see("fact5 is 5", "answering")
    painted = set(re.findall(r"fact\d+ is \d+\.", terminal.text))
    terminal.kill()
    assert painted

    again = desk.open("--continue", rows=150)
    again.see("read facts.txt", *painted)


def test_a_second_terminal_on_the_same_session_is_told_so(desk: Desk) -> None:
    first = desk.open()
    first.see("rolling: off")
    say(first, "hello there")
    first.see("done in")
    second = desk.open("--continue")
    second.see("open in another terminal", "hello there")
    say(second, "may I?")
    second.see("/fork")


def test_a_terminal_too_small_says_so_and_comes_back(desk: Desk) -> None:
    terminal = desk.open(columns=30, rows=6)
    terminal.see("too small")
    terminal.resize(100, 30)
    terminal.see("rolling: off")


def test_escape_stops_and_what_came_is_kept(desk: Desk) -> None:
    terminal = desk.open(ROLLING_CHAT_OFFLINE_DELAY="25")
    terminal.see("rolling: off")
    (desk.folder / "facts.txt").write_text("\n".join(f"fact{number} is {number}." for number in range(200)))
    say(terminal, "read facts.txt")
    terminal.see("fact5 is 5", "answering")
    terminal.type("\x1b")
    terminal.see("stopped", "fact5 is 5")


def test_typing_before_the_program_is_ready_is_not_lost(desk: Desk) -> None:
    terminal = desk.open()
    terminal.type("typed at once")
    terminal.see("typed at once", "rolling: off")
