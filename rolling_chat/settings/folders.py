"""The user's decisions about folders, stored outside of them: trusted files and permission rules.

Each folder has its own file, named by the hash of its real path, so that damage affects only one folder. A
folder that has replaced another has a different inode number and inherits nothing.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.toml_file import read_toml, replace_file
from rolling_chat.text import printable


@dataclass(frozen=True, slots=True)
class TrustedContent:
    """The contents with which a file is trusted; `text` is for showing changes."""

    sha256: str
    text: str

    @classmethod
    def of(cls, data: bytes) -> TrustedContent:
        """Create it from the bytes of a file that the user trusts."""
        text = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in _decoded(data))
        return cls(hashlib.sha256(data).hexdigest(), text)


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """The decisions about one folder; file names are relative to it.

    `instructions` are files trusted by their paths, and `contents` those trusted by their contents. The user
    is not asked again about those `refused`. `allow` and `deny` are permission rules.
    """

    instructions: tuple[str, ...] = ()
    contents: Mapping[str, TrustedContent] = field(default_factory=lambda: MappingProxyType({}))
    refused: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


def record_file(paths: Paths, folder: Path) -> Path:
    """Return the file with the decisions about a folder, whose path must be resolved."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    return paths.data_dir / "folders" / f"{name}.toml"


def read_record(paths: Paths, folder: Path) -> FolderRecord:
    """Return the decisions about a folder, whose path must be resolved. Raises SettingsError for damage."""
    file = record_file(paths, folder)
    table = read_toml(file)
    if not table:
        return FolderRecord()
    try:
        return _read(table, folder)
    except (AttributeError, KeyError, TypeError):
        name = printable(str(file), 300)
        raise SettingsError(f"{name}: is damaged: repair it, or delete it to be asked again") from None


def change_record(paths: Paths, folder: Path, change: Callable[[FolderRecord], FolderRecord]) -> FolderRecord:
    """Change the decisions about a folder and return them. Raises SettingsError if they cannot be stored."""
    import tomli_w  # noqa: PLC0415 - not needed to start

    file = record_file(paths, folder)
    with _locked(file):
        record = change(read_record(paths, folder))
        replace_file(file, tomli_w.dumps(_table(record, folder)))
        with suppress(OSError):
            file.chmod(0o600)
    return record


def _table(record: FolderRecord, folder: Path) -> dict[str, Any]:
    return {
        "folder": printable(str(folder), 4_000),
        "inode": str(_inode(folder)),
        "instructions": list(record.instructions),
        "refused": list(record.refused),
        "allow": list(record.allow),
        "deny": list(record.deny),
        "contents": {
            name: {"sha256": content.sha256, "text": content.text}
            for name, content in record.contents.items()
        },
    }


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Lock a record, so that only one process changes it at a time; on Windows, do nothing."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SettingsError(f"{printable(str(file), 300)}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(table: Mapping[str, Any], folder: Path) -> FolderRecord:
    if table["inode"] != str(_inode(folder)):
        return FolderRecord()
    contents = {
        name: TrustedContent(_text(content["sha256"]), _text(content["text"]))
        for name, content in table["contents"].items()
    }
    return FolderRecord(
        _texts(table["instructions"]),
        MappingProxyType(contents),
        _texts(table["refused"]),
        _texts(table["allow"]),
        _texts(table["deny"]),
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _inode(folder: Path) -> int:
    try:
        return folder.stat().st_ino
    except OSError:
        return 0


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
