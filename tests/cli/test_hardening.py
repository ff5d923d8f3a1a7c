"""A command of the model cannot read the environment of the program that runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

KEY = "sk-of-no-known-value-0123"

# Nothing is closed to root, so the program becomes nobody, which would close it by itself: it opens again.
LOOKED_AT = """
import ctypes, os, subprocess
from rolling_chat.hardening import close_process
libc = ctypes.CDLL(None)
if os.geteuid() == 0:
    os.setuid(65534)
libc.prctl(4, 1, 0, 0, 0)
look = ["sh", "-c", "cat /proc/$PPID/environ 2>&1"]
print(subprocess.run(look, stdout=subprocess.PIPE, cwd="/").stdout)
print(close_process())
print(subprocess.run(look, stdout=subprocess.PIPE, cwd="/").stdout)
"""


def test_a_child_cannot_read_the_environment_of_a_closed_process(program: Program) -> None:
    before, closed, after = _python(program, LOOKED_AT).splitlines()
    assert KEY in before
    assert closed == "True"
    assert KEY not in after
    assert "Permission denied" in after


def test_a_chat_closes_its_process_before_anything_is_run(program: Program) -> None:
    code = """
import ctypes
from rolling_chat.cli import run
run(["-p", "run `true`", "--approvals", "all", "--model", "demo/offline"])
print("dumpable:", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""
    assert "dumpable: 0" in _python(program, code)


def _python(program: Program, code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=program.folder,
        env={**program.environ, "OPENAI_API_KEY": KEY},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
