"""The real program in a real pseudo-terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.program import program_environment
from tests.support.terminal import Terminal


class Desk:
    """A person's desk: one folder, one home, as many terminals as they open."""

    def __init__(self, folder: Path, home: Path, stack: ExitStack) -> None:
        self.folder, self.home = folder, home
        self._stack = stack

    def open(self, *argv: str, columns: int = 100, rows: int = 30, **environ: str) -> Terminal:
        """Start the program in a terminal of its own."""
        terminal = Terminal(
            [sys.executable, "-m", "rolling_chat", *argv],
            environ=program_environment(self.home, **environ),
            folder=self.folder,
            columns=columns,
            rows=rows,
        )
        return self._stack.enter_context(terminal)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty folder and a fresh home."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    with ExitStack() as stack:
        yield Desk(folder, home, stack)
