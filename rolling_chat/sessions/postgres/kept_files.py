"""What files held before and after tools changed them, in PostgreSQL: contents once, compressed, by hash."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rolling_chat.sessions import kept_files
from rolling_chat.sessions.columns import versions
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.rows import COLUMNS, pack, unpack, unpack_json
from rolling_chat.sessions.records import KeptChange

_KEEP = "SELECT keep_files(%(batch)s, %(changes)s, %(hashes)s, %(contents)s::bytea[], %(most)s, %(now)s)"
_DROP = """
    DELETE FROM file_change USING unnest(%(ids)s::text[], %(paths)s::text[]) AS given (id, path), message
    WHERE message.id = given.id AND file_change.message = message.number AND file_change.path = given.path
        AND file_change.number = (SELECT max(number) FROM file_change AS newest
            WHERE newest.message = message.number AND newest.path = given.path)
        AND (%(batch)s = '' OR file_change.batch = %(batch)s)
"""
_OF_BRANCH = """
    SELECT message.id, path, before, before_mode, after, after_mode, links, folders, file_change.number,
        file_change.first
    FROM line_of(message_number(%(head)s)) AS line
    JOIN message ON message.run = line.run AND message.depth BETWEEN line.first AND line.last
    JOIN file_change ON file_change.message = message.number ORDER BY file_change.number
"""
_PATHS = """
    SELECT path FROM file_change WHERE owner = session_user ORDER BY number DESC LIMIT %(most)s
"""
_SIZE = "SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM file_content WHERE owner = session_user"
_KEEP_MODE = """
    UPDATE file_change SET after_mode = %(mode)s
    WHERE owner = session_user AND after = %(sha256)s AND path = %(path)s AND after_mode IS NULL
"""
# the same content may be kept for others, who share a session
_CONTENT = """
    SELECT data FROM file_content WHERE sha256 = %(sha256)s AND owner IN (SELECT session_user UNION ALL
        SELECT share.owner FROM share WHERE share.member = session_user) LIMIT 1
"""


class PostgresKeptFiles(KeptFiles):
    """The changes that tools made to files, in PostgreSQL."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._newest: dict[tuple[str, str], str] = {}  # of this process, by reply and path: a call's id

    def keep(self, changes: Iterable[KeptChange], contents: Iterable[bytes]) -> None:
        packed = {hashlib.sha256(data).hexdigest(): zlib.compress(data, level=1) for data in contents}
        rows = list(changes)
        batch = new_id()
        values = {
            "batch": batch,
            "changes": json.dumps([_columns(change) for change in rows]),
            "hashes": [*packed],
            "contents": [*packed.values()],
            "most": kept_files.MAX_KEPT_BYTES,
            "now": self._clock(),
        }
        self._database.run(_KEEP, values)
        self._newest |= {(change.message_id, change.path): batch for change in rows}

    def drop(self, changes: Sequence[KeptChange]) -> None:
        for change in reversed(changes):
            batch = self._newest.pop((change.message_id, change.path), "")
            values = {"ids": [pack(change.message_id)], "paths": [pack(change.path)], "batch": batch}
            self._database.run(_DROP, values)

    def of_branch(self, head: str) -> list[KeptChange]:
        return [_read(row) for row in self._database.run(_OF_BRANCH, {"head": pack(head)})] if head else []

    def has_any(self) -> bool:
        return bool(self.newest_paths(1))

    def newest_paths(self, most: int) -> list[str]:
        return [unpack(path) for (path,) in self._database.run(_PATHS, {"most": most})]

    def size(self) -> int:
        return int(self._database.row(_SIZE)[0])

    def keep_mode(self, path: str, sha256: str, mode: int) -> None:
        self._database.run(_KEEP_MODE, {"path": pack(path), "sha256": pack(sha256), "mode": mode})

    def content(self, sha256: str) -> bytes | None:
        rows = self._database.run(_CONTENT, {"sha256": pack(sha256)})
        if not rows:
            return None
        data = zlib.decompress(rows[0][0])
        # whom a session is shared with may have kept anything under a hash
        return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _columns(change: KeptChange) -> dict[str, Any]:
    return COLUMNS.change(change) | {"message": pack(change.message_id)}


def _read(row: Row) -> KeptChange:
    message, path, *version_columns, folders, number, first = row
    before, after = versions(*version_columns)
    made = tuple(str(folder) for folder in unpack_json(folders))
    return KeptChange(message, unpack(path), before, after, made, number, first)
