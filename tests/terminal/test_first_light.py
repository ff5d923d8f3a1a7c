"""From the first key to a resumed session, as a person would see it."""

from __future__ import annotations

import re

import pytest

from tests.support.terminal import Terminal
from tests.terminal.conftest import SLOW, Desk


def tokens_on_gauge(terminal: Terminal) -> float:
    """The prompt's size as the gauge shows it, in tokens."""
    found = re.search(r"~?([\d.,]+)(k?)(?: ±\d+%)? / 8\.2k", terminal.text)
    assert found, terminal.text
    return float(found.group(1).replace(",", "")) * (1_000 if found.group(2) else 1)


def test_type_stream_roll_quit_and_continue(desk: Desk) -> None:
    terminal = desk.open(anew=True)
    terminal.see("rolling: off", "demo/offline", "/ 8.2k")
    before = tokens_on_gauge(terminal)
    # three turns are seen in the tenths of a thousand that the gauge shows
    for turn in ("first", "second", "third"):
        terminal.say(f"The parser lives in lexer.py, I say the {turn} time. Where does the parser live?")
        terminal.see(f"❯ The parser lives in lexer.py, I say the {turn} time.", "done in")
    terminal.wait_until(lambda: tokens_on_gauge(terminal) > before, "the gauge did not move")
    assert "$" not in terminal.text  # what costs nothing has no price
    terminal.say("/rolling-context")
    terminal.see("rolling: on")
    terminal.say("/quit")
    assert terminal.leave() == 0
    resume = re.search(r"rolling-chat --resume (\w+)", terminal.text)
    assert resume, terminal.text

    again = desk.open("--continue")
    again.see("The parser lives in lexer.py", "rolling: on")
    again.kill()

    resumed = desk.open("--resume", resume.group(1)[:4])
    resumed.see("The parser lives in lexer.py", "rolling: on")


def test_a_command_runs_only_after_it_was_approved(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.say("run `touch made-by-hand`")
    # the frame names the keys only when they count
    terminal.see("Allow run_command?", "touch made-by-hand", "❯ 1 Once", "enter answer")
    assert not (desk.folder / "made-by-hand").exists()
    terminal.type("\r")
    terminal.see("⚙ run_command touch made-by-hand", "done in")
    assert (desk.folder / "made-by-hand").exists()


@pytest.mark.slow
def test_kill_9_in_mid_answer_loses_nothing_that_was_painted(desk: Desk) -> None:
    desk.write_facts()
    terminal = desk.open(ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    terminal.see("rolling: off")
    terminal.say("read facts.txt")
    terminal.see("fact1 is 1,", "answering")
    painted = set(re.findall(r"fact\d+ is \d+,", terminal.text))
    terminal.kill()
    assert painted

    again = desk.open("--continue", rows=150)
    again.see("read facts.txt", *painted)


@pytest.mark.slow
def test_escape_stops_and_what_came_is_kept(desk: Desk) -> None:
    desk.write_facts()
    terminal = desk.open(ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    terminal.see("rolling: off")
    terminal.say("read facts.txt")
    terminal.see("fact1 is 1,", "answering")
    terminal.type("\x1b")
    terminal.see("stopped after", "■ stopped here", "fact1 is 1,")


def test_a_message_typed_and_sent_before_the_program_is_ready_is_sent(desk: Desk) -> None:
    terminal = desk.open(anew=True, ROLLING_CHAT_OFFLINE_DELAY=SLOW)
    # the terminal is not in raw mode yet and makes a line feed of Enter
    terminal.type("said at once\rand a draft")
    terminal.see("❯ said at once", "done in", "❯ and a draft")


@pytest.mark.slow
def test_what_no_longer_fits_is_asked_about_once_and_goes_on_with_rolling_context(desk: Desk) -> None:
    terminal = desk.open(rows=40)
    terminal.see("rolling: off")
    question, turn = "The conversation no longer fits", 0
    while question not in terminal.text:
        turn += 1
        desk.write_facts(f"part{turn}.txt")
        terminal.say(f"read part{turn}.txt")
        terminal.see_either(question, f"part{turn}.txt begins with:")
        terminal.see_either(question, "done in")
    terminal.see("nothing was sent", "1 Turn rolling context on and go on", "enter answer")
    terminal.type("\r")
    terminal.see("Rolling context is on; ", f"part{turn}.txt begins with:", "done in", "rolling: on")
    terminal.wait_until(lambda: question not in terminal.text, "it still asks")


def test_a_terminal_too_small_says_so_and_comes_back(desk: Desk) -> None:
    terminal = desk.open(columns=30, rows=6)
    terminal.see("too small")
    terminal.resize_blank(100, 30)
    terminal.see("rolling: off")
    terminal.type("it takes keys again")
    terminal.see("❯ it takes keys again")
