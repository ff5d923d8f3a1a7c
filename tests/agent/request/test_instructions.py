from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from rolling_chat.agent.request.instructions import read_instructions, system_prompt
from rolling_chat.tools import choose_tools

START = datetime(2026, 3, 14, 12).timestamp()  # noqa: DTZ001  # local noon, as the prompt shows it


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    (root / "AGENTS.md").write_text("of the root")
    (root / "a" / "b" / "AGENTS.md").write_text("of b")
    return root


def test_the_prompt_tells_folder_date_platform_and_tools(tmp_path: Path) -> None:
    text = system_prompt(tmp_path, START, choose_tools("all"), "Be kind.")
    assert f"Working folder: {tmp_path}" in text
    assert "Date: Saturday, 14 March 2026" in text
    assert "Platform: " in text
    assert ", ".join(tool.name for tool in choose_tools("all")) in text
    assert text.endswith("\n\nBe kind.")


def test_the_prompt_stands_still_as_time_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = system_prompt(tmp_path, START, (), "")
    monkeypatch.setattr(time, "time", lambda: START + 90 * 86_400)
    assert system_prompt(tmp_path, START, (), "") == before
    assert "tools" not in before


def test_instructions_come_from_the_root_down_to_the_folder(repository: Path) -> None:
    assert read_instructions(repository / "a" / "b") == (
        f"Instructions from {repository}/AGENTS.md:\n\nof the root\n\n"
        f"Instructions from {repository}/a/b/AGENTS.md:\n\nof b"
    )


def test_without_a_repository_only_the_folders_own_count(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "plain").mkdir()
    assert read_instructions(tmp_path / "plain") == ""
    assert "above" in read_instructions(tmp_path)


def test_a_worktree_whose_git_is_a_file_is_a_repository(repository: Path) -> None:
    (repository / "a" / ".git").write_text("gitdir: elsewhere")
    assert "of the root" not in read_instructions(repository / "a" / "b")


def test_the_outermost_give_way_and_the_text_says_so(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("ü" * 500)
    (repository / "a" / "b" / "AGENTS.md").write_text("x" * 900)
    text = read_instructions(repository / "a" / "b", max_bytes=1_000)
    assert "x" * 900 in text
    assert "ü" * 50 in text
    assert "ü" * 51 not in text
    assert "[cut: " in text
    assert "than the 1,000 bytes that instructions may take]" in text


def test_a_link_out_of_the_repository_is_not_followed(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to(repository.parent / "AGENTS.md")
    assert "outside" not in read_instructions(repository)
    (repository / "README.md").write_text("inside")
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to("README.md")
    assert "inside" in read_instructions(repository)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "nothing"])
def test_what_is_no_file_is_passed_over(kind: str, repository: Path) -> None:
    file = repository / "AGENTS.md"
    file.unlink()
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "loop":
            file.symlink_to("AGENTS.md")
    assert read_instructions(repository) == ""


def test_bytes_that_are_no_text_are_replaced(repository: Path) -> None:
    (repository / "AGENTS.md").write_bytes(b"caf\xe9\x00")
    assert read_instructions(repository).endswith("caf\ufffd\ufffd")
