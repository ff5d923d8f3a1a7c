"""What is read as simple commands is what the shell runs, and nothing else."""

from __future__ import annotations

import os
import random
import shutil
import subprocess

import pytest

from rolling_chat.permissions.shell import UnreadableCommandError, split_command

BASH = shutil.which("bash")
# runs for every program there is not, which is every one where PATH is empty
_HANDLER = """() { local s= w; for w in "$@"; do s+="<$w>"; done; printf '%s\\036' "$s"; }"""
_TEXT = """ab 'ab' "ab" a b if in time a=b é 'é' $(a) `a` \\ \\; ' " ; & && | || = - . / , : @ %
^ + $ ( ) { } < > # ! ~"""
_PIECES = [*_TEXT.split(), " ", " ", " ", " ", "\n", "\t", "\\\n"]


def _run_by_bash(command: str) -> set[str]:
    environ = {"PATH": "/nowhere", "BASH_FUNC_command_not_found_handle%%": _HANDLER, "LANG": "C.UTF-8"}
    ran = subprocess.run(
        [BASH, "-c", command], env=environ, capture_output=True, timeout=60, cwd="/", check=False
    )
    return {line for line in os.fsdecode(ran.stdout).split("\x1e") if line}


def _read_by_us(command: str) -> set[str] | None:
    try:
        parts = split_command(command)
    except UnreadableCommandError:
        return None
    if not all(word.is_literal for part in parts for word in part.words):
        return None  # the shell puts file names there
    return {"".join(f"<{word.text}>" for word in part.words) for part in parts}


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_runs_no_command_that_was_not_read_as_one() -> None:
    choose = random.Random(7)
    compared = 0
    while compared < 60:
        command = "".join(choose.choices(_PIECES, k=choose.randint(1, 12)))
        ours = _read_by_us(command)
        if ours is not None and any("a" in each or "b" in each for each in ours):
            ran = _run_by_bash(command)
            assert ran <= ours, command
            compared += bool(ran)
