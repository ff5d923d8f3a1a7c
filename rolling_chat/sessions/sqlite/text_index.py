"""The text index when it is damaged: everything in it can be made again, or done without."""

from __future__ import annotations

import logging
import sqlite3

_log = logging.getLogger("rolling_chat.sessions")

_CHECK = (
    "INSERT INTO message_text (message_text) VALUES ('integrity-check')",
    # what the check does not read
    "SELECT total(length(sz)) FROM message_text_docsize",
)
_REBUILD = "INSERT INTO message_text (message_text) VALUES ('rebuild')"
_TRIGGERS = ("message_text_added", "message_text_changed", "message_text_deleted")


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether a database error means that the file is damaged."""
    code = getattr(error, "sqlite_errorname", "") or ""
    return code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def repair(connection: sqlite3.Connection) -> str:
    """Rebuild a damaged full-text index; if that fails, go on without one.

    The messages themselves are not touched. Returns what was done, in words; empty where the index is
    not what is damaged. To be called outside of a transaction.
    """
    if _done(connection, *_CHECK):
        return ""
    if _done(connection, _REBUILD):
        return "its text index was damaged and has been made again; try again"
    if _done(connection, *(f"DROP TRIGGER IF EXISTS {name}" for name in _TRIGGERS)):
        return "its text index is damaged; messages are kept without it and search is slower; try again"
    return ""


def is_kept(connection: sqlite3.Connection) -> bool:
    """Return whether new messages are added to the full-text index."""
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = ?", _TRIGGERS[:1]
    )
    return found.fetchone() is not None


def _done(connection: sqlite3.Connection, *statements: str) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement).fetchall()
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _log.warning("the text index: %s", error)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True
