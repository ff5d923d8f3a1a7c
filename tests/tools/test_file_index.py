"""The index of files: what is in it, and what is found first."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rolling_chat.tools import file_index
from rolling_chat.tools.file_index import FileIndex, read_index

ENVIRON = {"PATH": os.environ["PATH"]}
NAMES = ["src/x.py", "src/deep/xylo.py", "README.md", "tests/test_x.py", "a b.txt", "docs/src.md"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("", "src/"),
        ("x", "src/x.py"),
        ("SRC", "src/"),
        ("rdme", "README.md"),
        ("b.t", "a b.txt"),
        ("tests/t", "tests/test_x.py"),
    ],
)
def test_the_likeliest_name_comes_first(typed: str, first: str) -> None:
    assert FileIndex(NAMES).search(typed, 10)[0] == first


def test_all_names_with_the_letters_in_order_are_found_and_no_others() -> None:
    index = FileIndex(NAMES * 1 + [f"many/{at}/file{at}.txt" for at in range(9_000)])
    assert set(index.search("txp", 100)) == {"tests/test_x.py"}
    assert index.search("file8999", 10) == ["many/8999/file8999.txt"]
    assert index.search("no such file", 10) == []


def test_names_with_line_ends_do_not_shift_the_others() -> None:
    index = FileIndex(["a\nb.txt", "c.txt", "d\ne\nf.txt", "g.txt"])
    assert index.search("g.txt", 5) == ["g.txt"]
    assert index.search("f.txt", 5) == ["d\ne\nf.txt"]


@needs_git
def test_git_says_what_is_there_and_what_is_ignored(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=ENVIRON)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "new.py").touch()
    (tmp_path / "run.log").touch()
    index = read_index(tmp_path, ENVIRON)
    assert "new.py" in index
    assert "run.log" not in index


@needs_git
def test_nothing_that_a_repository_says_is_run(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=ENVIRON)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {hook}\n\thooksPath = {tmp_path}\n[alias]\n\tls-files = !{hook}\n"
        )
    assert "hook" in read_index(tmp_path, ENVIRON)
    assert not (tmp_path / "ran").exists()


def test_without_git_the_rules_of_gitignore_hold_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "find_program", lambda *_: None)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x.o").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x.py").touch()
    (tmp_path / "src" / "loop").symlink_to(tmp_path)
    index = read_index(tmp_path, ENVIRON)
    assert set(index.search("", 10)) == {"src/", "src/x.py", ".gitignore"}
