"""The files that a session's tools read and wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from rolling_chat.messages import FileTouch
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.records import FileUse
from rolling_chat.sessions.sqlite.ancestry import is_on_branch
from rolling_chat.sessions.sqlite.message_search import IN_SESSION
from rolling_chat.sessions.sqlite.rows import insert, pack, unpack


def add(connection: sqlite3.Connection, message: int, touched: Iterable[FileTouch]) -> None:
    """Store which files a tool call read or wrote; `message` is the row of its result."""
    for touch in touched:
        columns = {"message": message, "path": pack(touch.path), "action": touch.action}
        insert(connection, "file", {**columns, "sha256": touch.sha256})


def last_known(connection: sqlite3.Connection, path: str, head: int | None) -> str | None:
    """Return the hash of a file when the branch of `head` last read or wrote all of it; None for never."""
    statement = """
        SELECT message, sha256 FROM file
        WHERE path = ? AND action IN ('read', 'written') ORDER BY number DESC
    """
    for message, sha256 in connection.execute(statement, (pack(path),)):
        if is_on_branch(connection, message, head):
            return str(sha256)
    return None


def of_session(connection: sqlite3.Connection, session: int) -> list[FileUse]:
    """Return the files that a session's tools read or wrote, on all branches, oldest first."""
    statement = f"""
        SELECT message.id, path, action, sha256, message.created_at
        FROM file JOIN message ON message.number = file.message
        WHERE file.message IN ({IN_SESSION}) ORDER BY file.number
    """  # noqa: S608 - our own words
    rows = connection.execute(statement, {"session": session})
    return [
        FileUse(FileTouch(unpack(path), action, sha256), unpacked(message), at)
        for message, path, action, sha256, at in rows
    ]
