"""The summaries of a session: rows that are only ever added, and which of them counts.

Every function works inside the caller's transaction; `session` is a session's row number, `head` that
of a message, None for before the first.
"""

from __future__ import annotations

import sqlite3

from rolling_chat.sessions.columns import unpack_skipped
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.records import StoredSummary
from rolling_chat.sessions.sqlite.ancestry import is_on_branch
from rolling_chat.sessions.sqlite.rows import COLUMNS, insert, message_number, unpack
from rolling_chat.sessions.values import real

_SELECT = """
    SELECT summary.*, message.depth, message.id AS through_id
    FROM summary JOIN message INDEXED BY message_ids ON message.number = summary.through
    WHERE summary.session = ? ORDER BY generation
"""

_COPY = """
    INSERT INTO summary (
        session, generation, made_from, through, text, digest, made_by, tokens_before, tokens_after,
        created_at, skipped
    )
    SELECT ?, generation, made_from, through, text, digest, made_by, tokens_before, tokens_after, created_at,
        skipped
    FROM summary WHERE number = ?
"""


def of_session(connection: sqlite3.Connection, session: int) -> list[StoredSummary]:
    """Return every summary of a session, oldest first."""
    return [_stored(row) for row in connection.execute(_SELECT, (session,))]


def newest(connection: sqlite3.Connection, session: int, head: int | None) -> StoredSummary | None:
    """Return the newest summary whose `through` is on the branch of `head`."""
    rows = connection.execute(f"{_SELECT} DESC", (session,))
    return next((_stored(row) for row in rows if is_on_branch(connection, row["through"], head)), None)


def publish(
    connection: sqlite3.Connection, session: int, summary: StoredSummary, expected: int, now: float
) -> StoredSummary | None:
    """Store a summary if `expected` is still the newest generation; None if it is not."""
    head, through = head_of(connection, session), message_number(connection, summary.through)
    before = newest(connection, session, head)
    if expected != (before.generation if before else 0) or not is_on_branch(connection, through, head):
        return None
    highest = connection.execute(
        "SELECT coalesce(max(generation), 0) FROM summary WHERE session = ?", (session,)
    ).fetchone()[0]
    add(connection, session, summary, highest + 1, now)
    return newest(connection, session, head)


def add(
    connection: sqlite3.Connection, session: int, summary: StoredSummary, generation: int, now: float
) -> None:
    """Store a summary as that of a generation."""
    columns = COLUMNS.summary(summary) | {
        "session": session,
        "generation": generation,
        "through": message_number(connection, summary.through),
        "created_at": real(summary.created_at) or now,
    }
    insert(connection, "summary", columns)


def copy(connection: sqlite3.Connection, session: int, fork: int, head: int | None) -> None:
    """Copy to a fork the summaries that are valid up to `head`."""
    rows = connection.execute(_SELECT, (session,)).fetchall()
    for row in rows:
        if is_on_branch(connection, row["through"], head):
            connection.execute(_COPY, (fork, row["number"]))


def head_of(connection: sqlite3.Connection, session: int) -> int | None:
    """Return the head of a session."""
    head: int | None = connection.execute("SELECT head FROM session WHERE number = ?", (session,)).fetchone()[
        0
    ]
    return head


def _stored(row: sqlite3.Row) -> StoredSummary:
    return StoredSummary(
        text=unpack(row["text"]),
        through=unpacked(row["through_id"]),
        digest=row["digest"],
        made_by=unpack(row["made_by"]),
        made_from=row["made_from"],
        tokens_before=row["tokens_before"],
        tokens_after=row["tokens_after"],
        generation=row["generation"],
        place=row["depth"],
        created_at=row["created_at"],
        skipped=unpack_skipped(row["skipped"]),
    )
