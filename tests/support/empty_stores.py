"""Empty stores in SQLite, made once a process and copied: making one goes through every migration."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from rolling_chat.sessions.sqlite import database
from rolling_chat.sessions.sqlite.database import Database

_prepare, _migrate = database._prepare, Database._migrate


def copy_empty_stores(patch: pytest.MonkeyPatch) -> None:
    """Let every new store of this process begin as a copy."""
    patch.setattr(database, "_prepare", _prepare_copy)
    patch.setattr(Database, "_migrate", _migrate_copy)


def make_stores_anew(patch: pytest.MonkeyPatch) -> None:
    """Let every new store be made as the program makes it."""
    patch.setattr(database, "_prepare", _prepare)
    patch.setattr(Database, "_migrate", _migrate)


def _prepare_copy(path: Path, name: str) -> None:
    if not path.exists():
        with suppress(OSError):  # the program says it better
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_whole(path)
    _prepare(path, name)


def _write_whole(path: Path) -> None:
    """Write an empty store in one step, for others may open it at the same time."""
    draft = path.with_name(f".{os.urandom(8).hex()}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(_empty().serialize())
    try:
        os.link(draft, path)
    finally:
        draft.unlink()


def _migrate_copy(self: Database) -> None:
    if self._path is None:
        _empty().backup(self._connection)
    _migrate(self)


@cache
def _empty() -> sqlite3.Connection:
    made = Database(database._connect(":memory:"), "an empty store")
    _migrate(made)
    return made._connection
