"""The log of requests in PostgreSQL: what went into each, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from rolling_chat.messages import JsonObject, Usage
from rolling_chat.sessions.ids import new_id, short_of
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.rows import COLUMNS, pack, pack_json, unpack, unpack_json
from rolling_chat.sessions.records import MissRow, RequestRecord, StoreError, UsageRow
from rolling_chat.text import one_line

_LISTED = 5
_ALIKE = 900  # seconds: every clock of the world is a multiple of them away from the others

_SELECT = """
    SELECT request.id, request.short, session.id, request.head, request.model, request.plan,
        request.settings_digest, request.pipeline_version, request.wire_hash, request.estimated,
        request.bound, request.input_tokens, request.output_tokens, request.cached_read_tokens,
        request.cached_write_tokens, request.reasoning_tokens, request.cost, request.seconds,
        request.created_at, request.error, request.totals, request.purpose, request.cache_miss,
        request.missed_tokens
    FROM request JOIN session ON session.number = request.session
"""
_LOG = "SELECT log_request(%(session)s, %(store)s, %(request)s, %(basis)s, %(now)s)"
_FINISH = """
    UPDATE request SET input_tokens = %(input_tokens)s, output_tokens = %(output_tokens)s,
        cached_read_tokens = %(cached_read_tokens)s, cached_write_tokens = %(cached_write_tokens)s,
        reasoning_tokens = %(reasoning_tokens)s, cost = %(cost)s, seconds = %(seconds)s, error = %(error)s,
        cache_miss = %(cache_miss)s, missed_tokens = %(missed_tokens)s
    WHERE id = %(id)s RETURNING 1
"""
_SIZES = """
    SELECT CASE WHEN input_tokens > 0 THEN input_tokens ELSE estimated END FROM request
    WHERE session = (seen(%(session)s)).number AND purpose = 'answer' AND error = ''
    ORDER BY number DESC LIMIT %(most)s
"""
_MISSES = """
    SELECT cache_miss, count(*), sum(missed_tokens)::bigint AS tokens FROM request
    WHERE session = (seen(%(session)s)).number AND cache_miss <> '' GROUP BY cache_miss ORDER BY tokens DESC
"""
_TOKENS = """
    coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
    coalesce(sum(cached_read_tokens), 0)::bigint, coalesce(sum(cached_write_tokens), 0)::bigint,
    coalesce(sum(reasoning_tokens), 0)::bigint, sum(cost)
"""
_ROWS_OF = """
    WITH place AS MATERIALIZED (SELECT number FROM seen(%(session)s)),
    wanted AS MATERIALIZED (SELECT number FROM place UNION SELECT tasks_of(number) FROM place)
"""
_USAGE = f"""
    {_ROWS_OF} SELECT {_TOKENS} FROM request JOIN wanted ON wanted.number = request.session
"""  # noqa: S608
_GROUPS = {
    "day": f"floor(request.created_at / {_ALIKE})::bigint",
    "model": "request.model",
    "folder": "session.folder",
    "purpose": "CASE WHEN session.asked_by IS NULL THEN request.purpose ELSE 'task' END",
}
_OWN = "request.owner = session_user"
_WAYS = (  # of naming a request; the first that any is met by counts
    "request.short = %(start)s",
    "request.short BETWEEN %(start)s AND %(end)s",
    "request.id = %(start)s",
)


def log(database: Database, record: RequestRecord, basis: JsonObject | None, store: str, now: float) -> str:
    """Log a request and what it was made from; return its id.

    Where the `store` that has the session open is given, the request's plan becomes the session's.
    """
    made = new_id()
    database.run(
        _LOG,
        {
            "session": pack(record.session_id),
            "store": store,
            "request": json.dumps(columns(replace(record, id=made, short=f"q{short_of(made)}"))),
            "basis": None if basis is None else pack_json(basis),
            "now": now,
        },
    )
    return made


def columns(record: RequestRecord) -> dict[str, Any]:
    """Return what a request is added with."""
    return COLUMNS.request(record) | {"id": record.id, "head": pack(record.head)}


def finish(
    database: Database, id: str, *, usage: Usage, seconds: float, error: str, miss: tuple[str, int]
) -> None:
    """Store what came back of a request: usage, duration, error, and its miss of the provider's cache.

    Raises StoreError where there is no such request.
    """
    if not database.run(_FINISH, {"id": pack(id), **COLUMNS.outcome(usage, seconds, error, miss)}):
        raise StoreError(f"there is no request {id!r}; its session may have been deleted")


OF_SESSION = f"""
    {_SELECT} WHERE request.session = (seen(%(session)s)).number AND request.id <> ALL (%(without)s)
    ORDER BY request.number
"""
"""The requests of a session, oldest first, for `read`."""


def of_session(database: Database, session_id: str) -> list[RequestRecord]:
    """Return the requests of a session, oldest first."""
    values = {"session": pack(session_id), "without": list[str]()}
    return [read(row) for row in database.run(OF_SESSION, values)]


def sizes_of(database: Database, session_id: str, most: int) -> list[int]:
    """Return the tokens of a session's newest answered requests, oldest first: reported, else estimated."""
    rows = database.run(_SIZES, {"session": pack(session_id), "most": most})
    return [size for (size,) in reversed(rows)]


def last_answer(database: Database, session_id: str, model: str) -> RequestRecord | None:
    """Return a session's newest request that `model` answered, any model if it is empty; None for none."""
    statement = (
        f"{_SELECT} WHERE request.session = (seen(%(session)s)).number AND request.purpose = 'answer'"
        " AND request.error = '' AND request.input_tokens > 0"
        " AND (%(model)s = '' OR request.model = %(model)s)"
        " ORDER BY request.number DESC LIMIT 1"
    )
    rows = database.run(statement, {"session": pack(session_id), "model": pack(model)})
    return read(rows[0]) if rows else None


def misses_of(database: Database, session_id: str) -> list[MissRow]:
    """Return how often the requests of a session missed the provider's cache, by cause, most tokens first."""
    return [MissRow(*row) for row in database.run(_MISSES, {"session": pack(session_id)})]


def usage_of(database: Database, session_id: str) -> Usage:
    """Return the total usage of a session's requests and of those of its tasks."""
    return Usage(*database.row(_USAGE, {"session": pack(session_id)}))


def usage_rows(database: Database, by: str, session_id: str) -> list[UsageRow]:
    """Return the usage of all requests, or of those of a session and its tasks, by one of `_GROUPS`."""
    start = _ROWS_OF if session_id else ""
    where = "JOIN wanted ON wanted.number = request.session" if session_id else f"WHERE {_OWN}"
    statement = f"""
        {start} SELECT {_GROUPS[by]} AS name, count(*), count(*) FILTER (WHERE purpose = 'summary'),
            count(*) FILTER (WHERE cost IS NULL AND input_tokens + output_tokens > 0), {_TOKENS}
        FROM request JOIN session ON session.number = request.session {where} GROUP BY name ORDER BY name
    """  # noqa: S608 - our own expressions
    rows = [_usage_row(row) for row in database.run(statement, {"session": pack(session_id)})]
    return _by_day(rows) if by == "day" else rows


def _usage_row(row: Row) -> UsageRow:
    name, requests, summaries, unpriced, *tokens = row
    return UsageRow(unpack(str(name)), requests, summaries, unpriced, Usage(*tokens))


def _by_day(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Join what fell on one day by this machine's clock, which the server does not know."""
    days: dict[str, UsageRow] = {}
    for row in rows:
        day = datetime.fromtimestamp(int(row.name) * _ALIKE).astimezone().strftime("%Y-%m-%d")
        before = days.get(day, UsageRow(day, 0, 0, 0, Usage()))
        days[day] = UsageRow(
            day,
            before.requests + row.requests,
            before.summaries + row.summaries,
            before.unpriced + row.unpriced,
            before.usage + row.usage,
        )
    return list(days.values())


def cost_since(database: Database, at: float) -> float:
    """Return what the requests of all sessions since `at` (seconds since the epoch) cost, in US dollars."""
    statement = f"SELECT coalesce(sum(cost), 0) FROM request WHERE {_OWN} AND created_at >= %(at)s"  # noqa: S608
    return float(database.row(statement, {"at": at})[0])


def find(database: Database, id_start: str) -> RequestRecord:
    """Return the one request whose short id begins so, or whose id it is. Raises StoreError."""
    start = pack(id_start.strip().lower())
    said = repr(one_line(id_start, 40))
    values = {"start": start, "end": f"{start}\U0010ffff", "most": _LISTED + 1}
    rows: list[Row] = []
    for way in _WAYS if start else ():
        rows = rows or database.run(f"{_SELECT} WHERE {way} ORDER BY request.number LIMIT %(most)s", values)
    if not rows:
        raise StoreError(f"no request begins with {said}")
    if len(rows) > 1:
        named = ", ".join(row[1] for row in rows[:_LISTED])
        more = " and more" if len(rows) > _LISTED else ""
        raise StoreError(f"several requests begin with {said}: {named}{more}")
    return read(rows[0])


def basis(database: Database, digest: str) -> JsonObject | None:
    """Return the inputs (settings, system prompt, tools) stored under a digest; None if there are none."""
    rows = database.run("SELECT value FROM basis WHERE digest = %(digest)s", {"digest": pack(digest)})
    return cast(JsonObject, unpack_json(rows[0][0])) if rows else None


def read(row: Row) -> RequestRecord:
    """Build a record from a row of such a statement."""
    usage, rest = Usage(*row[11:17]), row[17:]
    seconds, created_at, error, totals, purpose, cache_miss, missed_tokens = rest
    return RequestRecord(
        id=row[0],
        short=row[1],
        session_id=row[2],
        head=unpack(row[3]),
        model=unpack(row[4]),
        plan=unpack_json(row[5]),
        settings_digest=row[6],
        pipeline_version=row[7],
        wire_hash=row[8],
        estimated=row[9],
        bound=row[10],
        usage=usage,
        seconds=seconds,
        created_at=created_at,
        error=unpack(error),
        totals=unpack_json(totals),
        purpose=purpose,
        cache_miss=cache_miss,
        missed_tokens=missed_tokens,
    )
