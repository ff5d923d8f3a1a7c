"""The changes that tools made to files, as rows; contents are compressed."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence

from rolling_chat.sessions.columns import versions
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.kept_files import MAX_KEPT_BYTES, KeptFiles
from rolling_chat.sessions.records import KeptChange
from rolling_chat.sessions.sqlite.database import Database
from rolling_chat.sessions.sqlite.rows import (
    COLUMNS,
    insert,
    message_number,
    pack,
    unpack,
    unpack_json,
)

_OF_BRANCH = """
    WITH RECURSIVE branch (number) AS (
        SELECT ?
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent IS NOT NULL
    )
    SELECT file_change.*, message.id FROM file_change JOIN branch ON file_change.message = branch.number
    JOIN message ON message.number = branch.number
    ORDER BY file_change.number
"""


class SqliteKeptFiles(KeptFiles):
    """The tables of the changes that tools made to files, and of what the files held."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def keep(self, changes: Iterable[KeptChange], contents: Iterable[bytes]) -> None:
        # hashed and compressed before others have to wait for the database
        packed = {hashlib.sha256(data).hexdigest(): zlib.compress(data, level=1) for data in contents}
        with self._database.write() as connection:
            for sha256, data in packed.items():
                _add_content(connection, sha256, data, self._clock())
            first = 0
            for change in changes:
                number = _add_change(connection, change, first)
                first = first or number
            _drop_oldest(connection)

    def drop(self, changes: Sequence[KeptChange]) -> None:
        with self._database.write() as connection:
            for change in reversed(changes):
                connection.execute(
                    "DELETE FROM file_change WHERE number = (SELECT MAX(number) FROM file_change"
                    " WHERE message = ? AND path = ?)",
                    (message_number(connection, change.message_id), pack(change.path)),
                )

    def of_branch(self, head: str) -> list[KeptChange]:
        if not head:
            return []
        with self._database.read() as connection:
            return [_read(row) for row in connection.execute(_OF_BRANCH, (message_number(connection, head),))]

    def has_any(self) -> bool:
        with self._database.read() as connection:
            return connection.execute("SELECT 1 FROM file_change LIMIT 1").fetchone() is not None

    def newest_paths(self, most: int) -> list[str]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT path FROM file_change ORDER BY number DESC LIMIT ?", (most,))
            return [unpack(row["path"]) for row in rows]

    def size(self) -> int:
        with self._database.read() as connection:
            return _size(connection)

    def keep_mode(self, path: str, sha256: str, mode: int) -> None:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE file_change SET after_mode = ? WHERE path = ? AND after = ? AND after_mode IS NULL",
                (mode, pack(path), sha256),
            )

    def content(self, sha256: str) -> bytes | None:
        with self._database.read() as connection:
            row = connection.execute("SELECT data FROM file_content WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else zlib.decompress(row["data"])


def drop_unused(connection: sqlite3.Connection) -> None:
    """Delete contents that no change refers to any more."""
    connection.execute(
        "DELETE FROM file_content WHERE sha256 NOT IN"
        " (SELECT before FROM file_change WHERE before IS NOT NULL"
        " UNION SELECT after FROM file_change WHERE after IS NOT NULL)"
    )


def _add_content(connection: sqlite3.Connection, sha256: str, data: bytes, now: float) -> None:
    connection.execute(
        "INSERT INTO file_content VALUES (?, ?, ?)"
        " ON CONFLICT (sha256) DO UPDATE SET kept_at = excluded.kept_at",
        (sha256, data, now),
    )


def _add_change(connection: sqlite3.Connection, change: KeptChange, first: int) -> int:
    """Add a row and return its number; `first` is that of its call's first change, 0 for this one."""
    message = message_number(connection, change.message_id)
    columns = COLUMNS.change(change) | {"message": message, "first": first}
    number = insert(connection, "file_change", columns)
    if not first:
        connection.execute("UPDATE file_change SET first = number WHERE number = ?", (number,))
    return number


def _drop_oldest(connection: sqlite3.Connection) -> None:
    """Keep the contents below their limit; those just added are the newest."""
    size = _size(connection)
    if size <= MAX_KEPT_BYTES:
        return
    rows = connection.execute(
        "SELECT sha256, LENGTH(data) FROM file_content ORDER BY kept_at, rowid"
    ).fetchall()
    for sha256, length in rows[:-2]:
        if size <= MAX_KEPT_BYTES:
            return
        connection.execute("DELETE FROM file_content WHERE sha256 = ?", (sha256,))
        size -= length


def _size(connection: sqlite3.Connection) -> int:
    (size,) = connection.execute("SELECT COALESCE(SUM(LENGTH(data)), 0) FROM file_content").fetchone()
    return int(size)


def _read(row: sqlite3.Row) -> KeptChange:
    before, after = versions(row["before"], row["before_mode"], row["after"], row["after_mode"], row["links"])
    folders = tuple(str(folder) for folder in unpack_json(row["folders"]))
    return KeptChange(
        unpacked(row["id"]), unpack(row["path"]), before, after, folders, row["number"], row["first"]
    )
