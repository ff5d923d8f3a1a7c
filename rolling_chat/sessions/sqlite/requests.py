"""The log of requests: what went into each, and what came back.

Every function works inside the caller's transaction; `session` is a session's row number.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import fields, replace
from typing import cast

from rolling_chat.messages import JsonObject, Usage
from rolling_chat.sessions.ids import is_id, new_id, packed, short_of, unpacked
from rolling_chat.sessions.records import MissRow, RequestRecord, StoreError, UsageRow
from rolling_chat.sessions.sqlite.directory import TASKS
from rolling_chat.sessions.sqlite.rows import (
    COLUMNS,
    insert,
    message_number,
    pack,
    pack_json,
    unpack,
    unpack_json,
)
from rolling_chat.sessions.values import real
from rolling_chat.text import one_line

_LISTED = 5
_NAME = re.compile(r"[0-9a-fq-]{1,40}")
_LAST = "\U0010ffff"  # behind everything that begins alike

_SELECT = """
    SELECT request.*, message.id AS head_id, session.id AS session_id
    FROM request JOIN session ON session.number = request.session
    LEFT JOIN message INDEXED BY message_ids ON message.number = request.head
"""


def log(
    connection: sqlite3.Connection,
    session: int,
    record: RequestRecord,
    basis: JsonObject | None,
    now: float,
) -> str:
    """Log a request and what it was made from; return its id."""
    made = new_id()
    at = real(record.created_at) or now
    add(connection, session, replace(record, id=made, short=f"q{short_of(made)}", created_at=at), basis)
    return made


def add(
    connection: sqlite3.Connection, session: int, record: RequestRecord, basis: JsonObject | None
) -> None:
    """Store a request with the id that it has, and what it was made from."""
    if basis is not None:
        connection.execute(
            "INSERT OR IGNORE INTO basis (digest, value) VALUES (?, ?)",
            (record.settings_digest, pack_json(basis)),
        )
    columns = COLUMNS.request(record) | {
        "id": packed(record.id),
        "session": session,
        "head": message_number(connection, record.head) if record.head else None,
    }
    insert(connection, "request", columns)


def finish(
    connection: sqlite3.Connection,
    id: str,
    *,
    usage: Usage,
    seconds: float,
    error: str,
    miss: tuple[str, int],
) -> None:
    """Store what came back of a request: usage, duration, error, and its miss of the provider's cache.

    Raises StoreError where there is no such request.
    """
    columns = COLUMNS.outcome(usage, seconds, error, miss)
    settings = ", ".join(f"{name} = ?" for name in columns)
    statement = f"UPDATE request SET {settings} WHERE id = ?"  # noqa: S608 - our own names
    key = packed(id) if is_id(id) else b""
    if not connection.execute(statement, (*columns.values(), key)).rowcount:
        raise StoreError(f"there is no request {id[:40]!r}; its session may have been deleted")


def of_session(connection: sqlite3.Connection, session: int) -> list[RequestRecord]:
    """Return the requests of a session, oldest first."""
    rows = connection.execute(f"{_SELECT} WHERE request.session = ? ORDER BY request.number", (session,))
    return [_record(row) for row in rows]


def sizes_of(connection: sqlite3.Connection, session: int, most: int) -> list[int]:
    """Return the tokens of a session's newest answered requests, oldest first: reported, else estimated."""
    rows = connection.execute(
        "SELECT iif(input_tokens > 0, input_tokens, estimated) FROM request"
        " WHERE session = ? AND purpose = 'answer' AND error = '' ORDER BY number DESC LIMIT ?",
        (session, most),
    )
    return [row[0] for row in reversed(rows.fetchall())]


def last_answer(connection: sqlite3.Connection, session: int, model: str) -> RequestRecord | None:
    """Return a session's newest request that `model` answered, any model if it is empty; None for none."""
    row = connection.execute(
        f"{_SELECT} WHERE request.session = :session AND purpose = 'answer' AND error = ''"
        " AND input_tokens > 0 AND (:model = '' OR request.model = :model)"
        " ORDER BY request.number DESC LIMIT 1",
        {"session": session, "model": pack(model)},
    ).fetchone()
    return None if row is None else _record(row)


def misses_of(connection: sqlite3.Connection, session: int) -> list[MissRow]:
    """Return how often the requests of a session missed the provider's cache, by cause, most tokens first."""
    rows = connection.execute(
        "SELECT cache_miss, count(*), sum(missed_tokens) AS tokens FROM request"
        " WHERE session = ? AND cache_miss != '' GROUP BY cache_miss ORDER BY tokens DESC",
        (session,),
    )
    return [MissRow(*row) for row in rows]


def _usage_in(row: sqlite3.Row) -> Usage:
    """The usage in a row; whether it was a sum matters only while a reply teaches how a model counts."""
    names = (field.name for field in fields(Usage) if field.name != "is_sum")
    return Usage(**{name: row[name] for name in names})


def usage_of(connection: sqlite3.Connection, session: int) -> Usage:
    """Return the total usage of a session's requests and of those of its tasks."""
    # the sum of nothing is NULL: no cost that is known, but a count of 0
    row = connection.execute(
        "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),"  # noqa: S608 - ours
        " coalesce(sum(cached_read_tokens), 0), coalesce(sum(cached_write_tokens), 0),"
        f" coalesce(sum(reasoning_tokens), 0), sum(cost) FROM request WHERE {_OF_SESSION}",
        {"session": session},
    ).fetchone()
    return Usage(*row)


_OF_SESSION = f"request.session IN (SELECT :session UNION ALL {TASKS})"
_SUMS = """
    count(*) AS requests, sum(purpose = 'summary') AS summaries,
    sum(cost IS NULL AND input_tokens + output_tokens > 0) AS unpriced,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cached_read_tokens) AS cached_read_tokens, sum(cached_write_tokens) AS cached_write_tokens,
    sum(reasoning_tokens) AS reasoning_tokens, sum(cost) AS cost
"""
_GROUPS = {
    "day": "date(request.created_at, 'unixepoch', 'localtime')",
    "model": "request.model",
    "folder": "session.folder",
    "purpose": "CASE WHEN session.asked_by IS NULL THEN request.purpose ELSE 'task' END",
}


def usage_rows(connection: sqlite3.Connection, by: str, session: int | None = None) -> list[UsageRow]:
    """Return the usage of all requests, or of those of a session and its tasks, by one of `_GROUPS`."""
    where = "" if session is None else f"WHERE {_OF_SESSION}"
    rows = connection.execute(
        f"SELECT {_GROUPS[by]} AS name, {_SUMS} FROM request"  # noqa: S608 - our own expressions
        f" JOIN session ON session.number = request.session {where} GROUP BY name ORDER BY name",
        {"session": session},
    )
    return [
        UsageRow(
            unpack(row["name"]), row["requests"], row["summaries"], row["unpriced"],
            _usage_in(row),
        )
        for row in rows
    ]  # fmt: skip


def cost_since(connection: sqlite3.Connection, at: float) -> float:
    """Return what the requests of all sessions since `at` (seconds since the epoch) cost, in US dollars."""
    row = connection.execute("SELECT total(cost) FROM request WHERE created_at >= ?", (at,)).fetchone()
    return float(row[0])


def find(connection: sqlite3.Connection, name: str) -> RequestRecord:
    """Return the one request whose short id begins so, or whose id it is. Raises StoreError."""
    wanted = name.strip().lower()
    rows = _named(connection, wanted) if _NAME.fullmatch(wanted) else []
    said = repr(one_line(name, 40))
    if not rows:
        raise StoreError(f"no request begins with {said}")
    if len(rows) > 1:
        named = ", ".join(row["short"] for row in rows[:_LISTED])
        more = " and more" if len(rows) > _LISTED else ""
        raise StoreError(f"several requests begin with {said}: {named}{more}")
    return _record(rows[0])


def _named(connection: sqlite3.Connection, wanted: str) -> list[sqlite3.Row]:
    """Return the requests of the first way of being named that any of them meets."""
    if is_id(wanted):
        return connection.execute(f"{_SELECT} WHERE request.id = ?", (packed(wanted),)).fetchall()
    for where in ("request.short = :first", "request.short BETWEEN :first AND :last"):
        statement = f"{_SELECT} WHERE {where} ORDER BY request.number LIMIT {_LISTED + 1}"
        rows = connection.execute(statement, {"first": wanted, "last": wanted + _LAST}).fetchall()
        if rows:
            return rows
    return []


def basis(connection: sqlite3.Connection, digest: str) -> JsonObject | None:
    """Return the inputs (settings, system prompt, tools) stored under a digest; None if there are none."""
    row = connection.execute("SELECT value FROM basis WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else cast(JsonObject, unpack_json(row["value"]))


def drop_unused(connection: sqlite3.Connection) -> None:
    """Delete stored inputs that no request refers to any more."""
    connection.execute("DELETE FROM basis WHERE digest NOT IN (SELECT settings_digest FROM request)")


def _record(row: sqlite3.Row) -> RequestRecord:
    return RequestRecord(
        id=unpacked(row["id"]),
        short=row["short"],
        session_id=row["session_id"],
        head="" if row["head_id"] is None else unpacked(row["head_id"]),
        model=unpack(row["model"]),
        plan=unpack_json(row["plan"]),
        settings_digest=row["settings_digest"],
        pipeline_version=row["pipeline_version"],
        wire_hash=row["wire_hash"],
        estimated=row["estimated"],
        bound=row["bound"],
        usage=_usage_in(row),
        seconds=row["seconds"],
        created_at=row["created_at"],
        error=unpack(row["error"]),
        totals=unpack_json(row["totals"]),
        purpose=row["purpose"],
        cache_miss=row["cache_miss"],
        missed_tokens=row["missed_tokens"],
    )
