"""The prompt history survives what happens to files."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.tui.controllers.history import History


def test_a_torn_or_foreign_file_costs_only_the_lines_that_are_broken(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"kept"\n{"not": "text"}\n\xff\xfe\n"torn')
    history = History(file)
    history.add("new")
    assert [history.older(""), history.older("")] == ["new", "kept"]


def test_the_same_line_twice_is_kept_once(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.add("again")
    history.add("again")
    assert [history.older(""), history.older("")] == ["again", None]


def test_a_file_that_cannot_be_written_does_not_stop_the_conversation(tmp_path: Path) -> None:
    history = History(tmp_path)  # a folder
    history.add("said")
    assert history.older("") == "said"


def test_what_is_there_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    History(file).add("secret")
    assert file.stat().st_mode & 0o077 == 0


def test_two_terminals_lose_nothing_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "history"
    first, second = History(file), History(file)
    first.add("from the first")
    second.add("from the second")
    both = History(file)
    assert [both.older(""), both.older("")] == ["from the second", "from the first"]
