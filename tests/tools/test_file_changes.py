"""Changes of files are made whole or not at all."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.tools import ToolContext, ToolError, file_changes, hashing
from rolling_chat.tools.file_changes import (
    MAX_EDITED_BYTES,
    ChangedMeanwhileError,
    FileChange,
    FileVersion,
    apply_changes,
    locate,
    read_version,
)

NEW = FileVersion(b"new")


def _everything(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_what_is_written_is_what_is_read(folder: Path, context: ToolContext) -> None:
    path = locate("sub/a", context)
    assert read_version(path, context) is None
    apply_changes([FileChange(path, None, NEW)], context)
    written = read_version(path, context)
    assert written is not None
    assert written.data == b"new"
    assert _everything(folder) == {"sub": None, "sub/a": b"new"}


def test_if_one_change_fails_those_before_it_are_taken_back(folder: Path, context: ToolContext) -> None:
    (folder / "b").write_text("old")
    (folder / "c").write_text("theirs")
    was = _everything(folder)
    known = read_version(folder / "b", context)
    changes = [
        FileChange(folder / "new" / "deep" / "a", None, NEW),
        FileChange(folder / "b", known, None),
        FileChange(folder / "c", FileVersion(b"mine", 0o644), NEW),
    ]
    with pytest.raises(ToolError, match="“c” was changed by somebody else: nothing was changed"):
        apply_changes(changes, context)
    assert _everything(folder) == was


@pytest.mark.parametrize(
    ("there", "said"),
    [(None, "is gone since it was read"), (b"other", "was changed by somebody else")],
)
def test_what_is_not_as_it_was_is_not_touched(
    folder: Path, context: ToolContext, there: bytes | None, said: str
) -> None:
    if there is not None:
        (folder / "a").write_bytes(there)
    with pytest.raises(ToolError, match=said):
        apply_changes([FileChange(folder / "a", FileVersion(b"was", 0o644), NEW)], context)
    assert _everything(folder) == ({} if there is None else {"a": there})


def test_a_changed_mode_is_a_change(folder: Path, context: ToolContext) -> None:
    (folder / "a").write_text("x")
    known = read_version(folder / "a", context)
    (folder / "a").chmod(0o700)
    with pytest.raises(ToolError, match="was changed by somebody else"):
        apply_changes([FileChange(folder / "a", known, NEW)], context)


def test_a_folder_that_cannot_be_synced_is_no_failure(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuses_folders(descriptor: int) -> None:
        if os.path.isdir(descriptor):  # noqa: PTH112 - a descriptor
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuses_folders)
    apply_changes([FileChange(folder / "a", None, NEW)], context)
    assert _everything(folder) == {"a": b"new"}


def test_a_file_keeps_its_owner(folder: Path, context: ToolContext) -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(folder.parent, 0, 0)
    (folder / "a").write_text("x")
    os.chown(folder / "a", 1234, 1235)
    known = read_version(folder / "a", context)
    assert known is not None
    apply_changes([FileChange(folder / "a", known, known.rewritten(b"y"))], context)
    found = (folder / "a").stat()
    assert (found.st_uid, found.st_gid) == (1234, 1235)


def test_a_file_that_is_too_large_is_refused(folder: Path, context: ToolContext) -> None:
    with (folder / "a").open("wb") as file:
        file.truncate(MAX_EDITED_BYTES + 1)
    with pytest.raises(ToolError, match="larger than 20 MB; it cannot be edited"):
        read_version(folder / "a", context)


def _saved_meanwhile(monkeypatch: pytest.MonkeyPatch, save: Callable[[], object]) -> None:
    """Have somebody save a file while the temporary one is written."""
    sync, saved = os.fsync, list[int]()

    def syncs(descriptor: int) -> None:
        if not saved:
            saved.append(descriptor)
            save()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", syncs)


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_save_in_the_middle_of_a_change_is_not_written_over(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch, is_new: bool, has_links: bool
) -> None:
    file = folder / "a"
    if not is_new:
        file.write_text("x")
    if not has_links:
        monkeypatch.setattr(os, "link", _refuses_links)
    known = read_version(file, context)
    _saved_meanwhile(monkeypatch, lambda: file.write_text("theirs"))
    with pytest.raises(ChangedMeanwhileError, match="nothing was changed"):
        apply_changes([FileChange(file, known, FileVersion(b"ours"))], context)
    assert _everything(folder) == {"a": b"theirs"}


def test_a_save_at_the_last_moment_is_not_written_over_by_a_new_file(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, replaced = os.link, os.replace

    def save(*arguments: Any, **keys: Any) -> None:
        (folder / "a").write_text("theirs")
        (link if keys.get("follow_symlinks") is False else replaced)(*arguments, **keys)

    monkeypatch.setattr(os, "link", save)
    monkeypatch.setattr(os, "replace", save)
    with pytest.raises(ChangedMeanwhileError, match="exists by now: nothing was changed"):
        apply_changes([FileChange(folder / "a", None, NEW)], context)
    assert _everything(folder) == {"a": b"theirs"}


def _refuses_links(*_: object, **__: object) -> None:
    raise OSError(1, "Operation not permitted")


def test_a_new_file_is_made_where_links_are_not_supported(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _refuses_links)
    apply_changes([FileChange(folder / "a", None, NEW)], context)
    assert _everything(folder) == {"a": b"new"}


def test_a_new_file_has_one_name(folder: Path, context: ToolContext) -> None:
    apply_changes([FileChange(folder / "a", None, NEW)], context)
    assert (folder / "a").stat().st_nlink == 1


def test_what_is_saved_between_two_changes_is_not_taken_back(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "b").write_text("b")
    _saved_meanwhile(monkeypatch, lambda: None)
    changes = [FileChange(folder / "a", None, NEW), FileChange(folder / "b", FileVersion(b"other"), NEW)]
    taken_back = file_changes._undoing

    def save(change: FileChange) -> FileChange:
        change.path.write_text("theirs")
        return taken_back(change)

    monkeypatch.setattr(file_changes, "_undoing", save)
    with pytest.raises(ChangedMeanwhileError):
        apply_changes(changes, context)
    assert _everything(folder) == {"a": b"theirs", "b": b"b"}


def test_files_are_opened_as_bytes_where_the_system_makes_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    binary = 1 << 28
    monkeypatch.setattr(os, "O_BINARY", binary, raising=False)
    for module in (file_changes, hashing):
        flags = runpy.run_path(str(module.__file__))
        assert flags["_READ"] & binary
        assert flags.get("_CREATE", binary) & binary
