"""What is copied reaches the clipboard of the terminal, and of a tmux in between."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from tests.support.program import program_environment
from tests.support.terminal import Terminal
from tests.terminal.conftest import Desk


def test_copy_tells_the_terminal(desk: Desk) -> None:
    desk.remember(Message("user", "hello"))
    terminal = desk.open("--continue")
    terminal.see("rolling: off", "hello")
    terminal.say("/copy message r1")
    terminal.see("Copied r1, user (5 characters).")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    assert terminal.copied == ["hello"]


def test_copy_takes_the_last_answer_whole_however_much_the_screen_shows(desk: Desk) -> None:
    answer = "\n\n".join(f"fact{number} is *{number}* é漢👩‍💻" for number in range(40))
    desk.remember(Message("user", "What are the facts?"), Message("assistant", answer))
    terminal = desk.open("--continue", rows=16)
    terminal.see("rolling: off", "fact39 is 39")
    assert "fact0 " not in terminal.text
    terminal.say("/copy")
    terminal.wait_until(lambda: bool(terminal.copied), "nothing was copied")
    assert terminal.copied == [answer]


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not on the PATH")
def test_copy_inside_tmux_reaches_its_buffer_and_the_terminal_behind_it(desk: Desk, tmp_path: Path) -> None:
    """tmux as it is set up by default: it neither reads the sequence nor passes it on."""
    environ = program_environment(desk.home, TERM="xterm-256color")
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    program = [sys.executable, "-m", "rolling_chat", "--continue"]
    desk.remember(Message("user", "hello"))

    def tmux_buffer() -> bytes:
        return subprocess.run([*tmux, "show-buffer"], env=environ, check=False, capture_output=True).stdout

    terminal = Terminal([*tmux, "new-session", *program], environ=environ, folder=desk.folder)
    with terminal:
        terminal.see("rolling: off", "hello")
        terminal.say("/copy message r1")
        terminal.see("Copied r1, user (5 characters).")
        terminal.wait_until(lambda: tmux_buffer() == b"hello", "tmux was told nothing")
        terminal.wait_until(lambda: bool(terminal.copied), "the terminal behind tmux was told nothing")
        assert terminal.copied[-1] == "hello"
        subprocess.run([*tmux, "kill-server"], env=environ, check=False)


@pytest.mark.skipif(shutil.which("screen") is None, reason="GNU screen is not on the PATH")
@pytest.mark.parametrize("length", [5, 4_000])
def test_copy_inside_gnu_screen_reaches_the_terminal_behind_it(
    desk: Desk, tmp_path: Path, length: int
) -> None:
    """Also what takes several of its short strings."""
    text = "é漢 copied " * (length // 10) or "hello"
    desk.remember(Message("user", "Say it."), Message("assistant", text.strip()))
    sockets = tmp_path / "s"
    sockets.mkdir(mode=0o700)
    environ = program_environment(desk.home, TERM="xterm-256color", SCREENDIR=str(sockets))
    screen = ["screen", "-S", "copying"]
    program = [sys.executable, "-m", "rolling_chat", "--continue"]
    with Terminal(
        [*screen, "-c", "/dev/null", "-U", *program], environ=environ, folder=desk.folder
    ) as terminal:
        terminal.see("❯", "rolling: off")
        terminal.say("/copy")
        terminal.see("Copied")
        terminal.wait_until(lambda: bool(terminal.copied), "the terminal behind screen was told nothing")
        assert terminal.copied == [text.strip()]
        subprocess.run([*screen, "-X", "quit"], env=environ, check=False)
