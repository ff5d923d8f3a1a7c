from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, memory_grep
from tests.support.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a process that searches as long as a busy machine takes to start it."""
    monkeypatch.setattr(memory_grep, "_TIMEOUT", PATIENCE_SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a neighbour that no tool may see."""
    (tmp_path / "outside.txt").write_text("secret of the neighbour\n")
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def context(folder: Path, tmp_path: Path) -> ToolContext:
    return ToolContext(folder, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
