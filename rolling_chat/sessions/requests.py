"""The log of requests: what went into each, and what came back.

Every function works inside the caller's transaction; `session` is a session's row number.
"""

from __future__ import annotations

import sqlite3
from dataclasses import fields

from rolling_chat.messages import Usage
from rolling_chat.sessions.records import RequestRecord, StoreError
from rolling_chat.sessions.rows import (
    insert,
    pack,
    pack_json,
    real,
    request_id,
    request_number,
    unpack,
    unpack_json,
    update,
    usage_columns,
    whole,
)


def log(connection: sqlite3.Connection, session: int, record: RequestRecord, now: float) -> str:
    """Add a request, return its id."""
    columns = {
        "session": session,
        "head": pack(record.head),
        "model": pack(record.model),
        "plan": pack_json(record.plan),
        "settings_digest": record.settings_digest,
        "pipeline_version": whole(record.pipeline_version),
        "wire_hash": record.wire_hash,
        "estimated": whole(record.estimated),
        "bound": whole(record.bound),
        "seconds": real(record.seconds),
        "created_at": real(record.created_at) or now,
        "error": pack(record.error),
        "totals": pack_json(dict(record.totals)),
    }
    return request_id(insert(connection, "request", columns | usage_columns(record.usage)))


def finish(connection: sqlite3.Connection, id: str, usage: Usage, seconds: float, error: str) -> None:
    """Add what came back. Raises StoreError where there is no such request."""
    columns = usage_columns(usage) | {"seconds": real(seconds), "error": pack(error)}
    if not update(connection, "request", request_number(id), columns):
        raise StoreError(f"there is no request {id!r}; its session may have been deleted")


def of_session(connection: sqlite3.Connection, session: int, session_id: str) -> list[RequestRecord]:
    """The requests of a session, oldest first."""
    rows = connection.execute("SELECT * FROM request WHERE session = ? ORDER BY number", (session,))
    return [_record(row, session_id) for row in rows]


def _record(row: sqlite3.Row, session_id: str) -> RequestRecord:
    return RequestRecord(
        id=request_id(row["number"]),
        session_id=session_id,
        head=unpack(row["head"]),
        model=unpack(row["model"]),
        plan=unpack_json(row["plan"]),
        settings_digest=row["settings_digest"],
        pipeline_version=row["pipeline_version"],
        wire_hash=row["wire_hash"],
        estimated=row["estimated"],
        bound=row["bound"],
        usage=Usage(**{field.name: row[field.name] for field in fields(Usage)}),
        seconds=row["seconds"],
        created_at=row["created_at"],
        error=unpack(row["error"]),
        totals=unpack_json(row["totals"]),
    )
