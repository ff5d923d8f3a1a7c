"""The prompt box in a real terminal: pastes, the person's own editor and pager, and kill -9."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest

from tests.support.program import program_environment
from tests.support.terminal import Terminal
from tests.terminal.conftest import Desk

CTRL_C, CTRL_R, CTRL_Z, EDITOR_KEYS = "\x03", "\x12", "\x1a", "\x18\x05"
LOG = "".join(f"line {number} of a log with some words in it\n" for number in range(10_000))

EDITOR = """
import os, sys, signal, tty
file = sys.argv[-1]
text = open(file).read()
signal.signal(signal.SIGINT, signal.SIG_DFL)
print()
print("EDITING", oct(os.stat(file).st_mode), len(text), file)
what = input("and now? ")
if what == "fail":
    sys.exit(3)
if what == "die":
    tty.setraw(0)
    os.kill(os.getpid(), signal.SIGKILL)
open(file, "w").write(text.replace("kettle", "teapot") + "\\n")
"""

PAGING = """
import sys
from textual.app import App
from textual.widgets import Static
from rolling_chat.tui.terminal.external import page_text
class Reader(App):
    BINDINGS = [("p", "page", "page")]
    def compose(self):
        yield Static("the app")
    async def action_page(self):
        self.run_worker(page_text(self, "\\x1b[31mfirst\\n" + "a line\\n" * 3))
Reader().run()
"""


def paste(terminal: Terminal, text: str) -> None:
    terminal.type(f"\x1b[200~{text}\x1b[201~")


def editor(desk: Desk) -> str:
    """A command that edits as it is told, with an argument of its own."""
    file = desk.home / "editor.py"
    file.write_text(EDITOR)
    return f"{sys.executable} {file} --wait"


def kept(desk: Desk) -> list[str]:
    """The drafts on disk."""
    return [file.read_text() for file in (desk.home / "rolling-chat" / "drafts").glob("*.json")]


def wait_for_kept(terminal: Terminal, desk: Desk, text: str) -> None:
    """Wait until a draft with this text is on disk."""
    terminal.wait_until(lambda: any(text in one for one in kept(desk)), f"{text!r} was not kept")


def test_ten_thousand_lines_are_one_word_and_are_sent_whole(desk: Desk) -> None:
    terminal = desk.open(columns=80, rows=24)
    terminal.see("rolling: off")
    paste(terminal, LOG)
    terminal.see("[paste 1: 10,000 lines")
    terminal.type(" is the log")
    terminal.see("] is the log", "+129k tokens")
    terminal.resize_blank(60, 24)
    terminal.see("[paste 1: 10,000 lines")
    terminal.type("\r")
    terminal.see("Cannot fit request within context limit", "129,0")


@pytest.mark.parametrize("said", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_kill_9_loses_no_draft(desk: Desk, said: bool) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    if said:
        terminal.say("hello")
        terminal.see("done in")
    paste(terminal, LOG)
    terminal.see("[paste 1: 10,000 lines")
    terminal.type(" and half a thought")
    terminal.see("and half a thought")
    wait_for_kept(terminal, desk, "and half a thought")
    terminal.kill()

    again = desk.open(*(["--continue"] if said else []))
    again.see("[paste 1: 10,000 lines", "and half a thought", "The draft that was not sent is back")
    again.type(CTRL_C)
    again.see("Ask anything")
    again.wait_until(lambda: not kept(desk), "the draft was not forgotten")


@pytest.mark.slow
def test_what_was_sent_is_not_brought_back(desk: Desk) -> None:
    terminal = desk.open()
    terminal.see("rolling: off")
    terminal.type("What color is the kettle?")
    wait_for_kept(terminal, desk, "kettle")
    terminal.type("\r")
    terminal.see("done in")
    terminal.kill()
    again = desk.open("--continue")
    again.see("rolling: off", "What color is the kettle?", "Ask anything")
    assert "The draft that was not sent" not in again.text


@pytest.mark.slow
def test_two_terminals_keep_a_draft_each(desk: Desk) -> None:
    one, other = desk.open(), desk.open()
    for terminal, text in ((one, "from the first"), (other, "from the second")):
        terminal.see("rolling: off")
        terminal.type(text)
        terminal.see(f"❯ {text}")
        wait_for_kept(terminal, desk, text)
    one.kill()
    assert sum("from the" in text for text in kept(desk)) == 2
    third = desk.open()
    third.see("❯ from the first")
    other.kill()


@pytest.mark.slow
def test_a_data_folder_that_cannot_be_written_leaves_the_box_as_it_is(desk: Desk) -> None:
    home = desk.home / "rolling-chat"
    home.mkdir()
    for name in ("drafts", "pastes", "history"):
        (home / name).mkdir() if name == "history" else (home / name).write_text("in the way")
    terminal = desk.open()
    terminal.see("rolling: off")
    paste(terminal, LOG)
    terminal.see("[paste 1: 10,000 lines")
    terminal.type("\x7fhello\r")
    terminal.see("done in")


def test_the_editor_gets_the_draft_and_gives_it_back(desk: Desk) -> None:
    terminal = desk.open(EDITOR=editor(desk), columns=160)
    terminal.see("rolling: off")
    terminal.type("the kettle ")
    paste(terminal, LOG)
    terminal.see("[paste 1: 10,000 lines")
    terminal.type(EDITOR_KEYS)
    terminal.see("EDITING", "and now?")
    mode, size, file = re.findall(r"EDITING 0o100(\d+) (\d+) (\S+)", terminal.text)[0]
    assert (mode, int(size)) == ("600", len("the kettle ") + len(LOG))
    assert stat.S_IMODE(Path(file).parent.stat().st_mode) == 0o700
    terminal.type("save\r")
    terminal.see("❯ the teapot [paste 2: 10,000 lines")
    assert not Path(file).parent.exists()
    terminal.type("!\x1f\x1f")
    terminal.see("❯ the kettle [paste 1: 10,000 lines")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        pytest.param("fail\r", "ended with code 3: nothing was changed", marks=pytest.mark.slow),
        ("die\r", "was ended by signal 9"),
        pytest.param(CTRL_C, "was ended by signal 2", marks=pytest.mark.slow),
    ],
)
def test_an_editor_that_fails_loses_nothing_and_leaves_the_terminal_in_order(
    desk: Desk, answer: str, line: str
) -> None:
    terminal = desk.open(VISUAL=editor(desk))
    terminal.see("rolling: off")
    terminal.type("the kettle")
    terminal.see("❯ the kettle")
    terminal.type(EDITOR_KEYS)
    terminal.see("and now?")
    terminal.type(answer)
    terminal.see(line, "❯ the kettle")
    terminal.type(" is blue")
    terminal.see("❯ the kettle is blue")
    terminal.type("\x11")
    assert terminal.leave() == 0
    assert terminal.takes_lines


def test_an_editor_that_is_not_there_is_one_line(desk: Desk) -> None:
    terminal = desk.open(VISUAL="no-such-editor --wait")
    terminal.see("rolling: off")
    terminal.type("kept")
    terminal.see("❯ kept")
    terminal.type(EDITOR_KEYS)
    terminal.see("The editor no-such-editor cannot be started", "❯ kept")


def test_ctrl_z_in_the_editor_stops_both_and_fg_returns_to_the_editor(desk: Desk) -> None:
    terminal = desk.open(EDITOR=editor(desk))
    terminal.see("rolling: off")
    terminal.type("the kettle")
    terminal.see("❯ the kettle")
    terminal.type(EDITOR_KEYS)
    terminal.see("and now?")
    terminal.type(CTRL_Z)
    terminal.wait_until_stopped()
    terminal.go_on()
    terminal.type("save\r")
    terminal.see("❯ the teapot")


def test_a_text_is_shown_in_the_pager_and_its_control_characters_are_not_obeyed(desk: Desk) -> None:
    script = desk.home / "paging.py"
    script.write_text(PAGING)
    temporary = desk.home / "temporary"
    temporary.mkdir()
    with Terminal(
        [sys.executable, str(script)],
        environ=program_environment(desk.home, PAGER="less", LESS="FRX", TMPDIR=str(temporary)),
        folder=desk.folder,
    ) as terminal:
        terminal.see("the app")
        terminal.type("p")
        terminal.see("␛[31mfirst", "(END)")
        assert list(temporary.glob("rolling-chat-*"))
        terminal.type("q")
        terminal.see("the app")
        terminal.type("\x11")
        assert terminal.leave() == 0
    assert not list(temporary.iterdir())


@pytest.mark.slow
def test_the_history_of_another_terminal_is_searched(desk: Desk) -> None:
    one, other = desk.open(), desk.open()
    other.see("rolling: off")
    one.see("rolling: off")
    one.say("What color is the kettle?")
    one.see("done in")
    other.type(CTRL_R + "kett")
    other.see("history: kett", "❯ What color is the kettle?")
    other.type("\r!")
    other.wait_until(lambda: "history:" not in other.text, "the search did not end")


@pytest.mark.slow
def test_kill_9_loses_nothing_that_waits_for_the_turn(desk: Desk) -> None:
    terminal = desk.open("--approvals", "all")
    terminal.see("rolling: off")
    terminal.say("run `sleep 20`")
    terminal.see("running run_command")
    terminal.say("with tabs")
    terminal.see("↳ with the next result: with tabs")
    terminal.type("then commit\x1b\r")
    terminal.see("↳ after this turn: then commit")
    terminal.type("half a th")
    terminal.wait_until(lambda: any("half a th" in one for one in kept(desk)), "the draft was not saved")
    terminal.kill()

    again = desk.open("--continue")
    again.see("❯ with tabs", "then commit", "half a th", "The draft that was not sent is back")
