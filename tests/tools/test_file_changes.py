"""Changes of files are made whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.file_changes import (
    MAX_EDITED_BYTES,
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
