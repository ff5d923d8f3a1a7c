"""The summaries of a session in PostgreSQL: rows that are only ever added, and which of them counts."""

from __future__ import annotations

import json
from typing import Any

from rolling_chat.sessions.columns import unpack_skipped
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.rows import COLUMNS, pack, unpack
from rolling_chat.sessions.records import StoredSummary

_COLUMNS = """
    SELECT summary.text, message.id, summary.digest, summary.made_by, summary.made_from,
        summary.tokens_before, summary.tokens_after, summary.generation, message.depth, summary.created_at, summary.skipped
"""  # noqa: E501
_NEWEST = f"""
    {_COLUMNS} FROM seen(%(session)s) AS place CROSS JOIN LATERAL newest_summary(place.number, place.head)
        AS summary JOIN message ON message.number = summary.through
"""
OF_SESSION = f"""
    {_COLUMNS} FROM seen(%(session)s) AS place JOIN summary ON summary.session = place.number
    JOIN message ON message.number = summary.through ORDER BY generation
"""
"""Every summary of a session, oldest first, for `read`."""
_PUBLISH = f"""
    {_COLUMNS} FROM publish_summary(%(session)s, %(store)s, %(summary)s, %(expected)s, %(now)s) AS summary
    JOIN message ON message.number = summary.through
"""


def newest(database: Database, session_id: str) -> StoredSummary | None:
    """Return the newest summary whose last message is on the session's branch."""
    rows = database.run(_NEWEST, {"session": pack(session_id)})
    return read(rows[0]) if rows else None


def every(database: Database, session_id: str) -> list[StoredSummary]:
    """Return every summary of a session, oldest first."""
    return [read(row) for row in database.run(OF_SESSION, {"session": pack(session_id)})]


def publish(
    database: Database, session_id: str, summary: StoredSummary, *, store: str, expected: int, now: float
) -> StoredSummary | None:
    """Store a summary if `expected` is still the newest generation; None if it is not."""
    values = {
        "session": pack(session_id),
        "store": store,
        "summary": json.dumps(columns(summary)),
        "expected": expected,
    }
    rows = database.run(_PUBLISH, {**values, "now": now})
    return read(rows[0]) if rows else None


def columns(summary: StoredSummary) -> dict[str, Any]:
    """Return what a summary is added with."""
    generation = {"id": new_id(), "generation": summary.generation, "through": pack(summary.through)}
    return COLUMNS.summary(summary) | generation


def read(row: Row) -> StoredSummary:
    """Build a summary from a row of such a statement."""
    text, through, digest, made_by, made_from, before, after, generation, depth, created_at, skipped = row
    return StoredSummary(
        text=unpack(text),
        through=through,
        digest=digest,
        made_by=unpack(made_by),
        made_from=made_from,
        tokens_before=before,
        tokens_after=after,
        generation=generation,
        place=depth,
        created_at=created_at,
        skipped=unpack_skipped(skipped),
    )
