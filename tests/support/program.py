"""Running the real program: in this process for speed, or as a child of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.cli import run
from tests.support.forking import run_forked


def program_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing of the person's in it: no key, no settings, a home of its own."""
    keep = {key: value for key, value in os.environ.items() if key in {"PATH", "SYSTEMROOT"}}
    return {
        **keep,
        # less and tmux show nothing else as it is
        "LC_ALL": "C.UTF-8",
        "HOME": str(home),
        "ROLLING_CHAT_HOME": str(home / "rolling-chat"),
        "ROLLING_CHAT_OFFLINE_DELAY": "0",
        # a port where no Ollama listens, whatever else runs on the machine
        "OLLAMA_HOST": "http://127.0.0.1:9",
        **more,
    }


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the program came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


class Program:
    """The program in a folder and a home of its own."""

    def __init__(
        self, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        self.folder, self.home = folder, home
        # -p asks no model that nobody chose
        self.environ = program_environment(home, ROLLING_CHAT_MODEL="demo/offline")
        self._capsys = capsys
        for name in list(os.environ):
            if name.endswith("_API_KEY") or name.startswith("ROLLING_CHAT_"):
                monkeypatch.delenv(name)
        for name, value in self.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", None)

    def __call__(self, *argv: str) -> Ran:
        """Run one command line in this process."""
        self._capsys.readouterr()
        code = run(argv)
        captured = self._capsys.readouterr()
        return Ran(int(code), captured.out, captured.err)

    def child(self, *argv: str, stdin: bytes | None = None, environ: Mapping[str, str] | None = None) -> Ran:
        """Run one command line in a process of its own; `stdin` None is the null device."""
        environ = {**self.environ, **(environ or {})}
        if sys.platform == "linux":
            return Ran(*run_forked(argv, environ, self.folder, stdin))
        done = subprocess.run(
            [sys.executable, "-m", "rolling_chat", *argv],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """The program in an empty folder."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    return Program(folder, home, monkeypatch, capsys)
