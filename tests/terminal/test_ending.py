"""The process is gone once the screen is, whatever the libraries still have to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.program import program_environment
from tests.terminal.conftest import Desk

# the end of the interpreter never comes: as where a destructor waits for the lock of an import
_NO_END = "import atexit, time; atexit.register(time.sleep, 10_000)\n"
_ENDLESS_IMPORT = """
import pathlib, types
import rolling_chat.providers.litellm_loading as loading
def blocked(name):
    pathlib.Path("importing").touch()
    time.sleep(10_000)
loading.importlib = types.SimpleNamespace(import_module=blocked)
"""
_RUN = 'import runpy; runpy.run_module("rolling_chat", run_name="__main__", alter_sys=True)'


def test_quitting_amid_an_import_ends_the_process(desk: Desk) -> None:
    # the offline model needs no import
    terminal = desk.open(anew=True, first=_NO_END + _ENDLESS_IMPORT, ROLLING_CHAT_MODEL="openai/gpt-5.4")
    terminal.see("rolling: off")
    terminal.wait_until((desk.folder / "importing").exists, "nothing is imported")
    terminal.type("\x11")
    assert terminal.leave() == 0


@pytest.mark.slow
def test_quitting_after_an_answer_ends_the_process_and_prints_how_to_go_on(desk: Desk) -> None:
    terminal = desk.open(first=_NO_END)
    terminal.see("rolling: off")
    terminal.say("hello")
    terminal.see("done in")
    terminal.type("\x11")
    assert terminal.leave() == 0
    assert "Continue with: rolling-chat" in terminal.text


@pytest.mark.parametrize(("text", "code"), [("hello", 0), ("", 2)])
def test_all_output_is_there_and_the_code_is_right(desk: Desk, text: str, code: int) -> None:
    argv = ["-c", f"{_NO_END if text else ''}{_RUN}", "-p", text, "--model", "demo/offline"]
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=desk.folder,
        env=program_environment(desk.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == code
    assert bool(done.stdout.strip()) == bool(text)
    assert b"rolling-chat: " in done.stderr or text
