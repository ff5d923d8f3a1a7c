"""Sessions as they go from one store to another and back, in PostgreSQL: a few statements each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from rolling_chat.messages import FileTouch, JsonObject
from rolling_chat.sessions.columns import pack_counts, unpack_counts
from rolling_chat.sessions.postgres import directory, requests, summaries
from rolling_chat.sessions.postgres.database import Database, Row, Values
from rolling_chat.sessions.postgres.rows import (
    COUNTS,
    MESSAGE_COLUMNS,
    message_columns,
    pack,
    pack_json,
    read_message,
    unpack,
    unpack_json,
)
from rolling_chat.sessions.records import AskedBy, PlacedMessage, SessionCopy, SessionInfo
from rolling_chat.sessions.values import require_id

_PART = 4_000_000  # characters of one statement: a session can be larger than what a value may be

_IDS = """
    WITH place AS MATERIALIZED (SELECT number FROM seen(%(session)s)),
    wanted AS MATERIALIZED (SELECT number FROM place UNION SELECT tasks_of(number) FROM place)
    SELECT message.id FROM wanted CROSS JOIN LATERAL tree_of(wanted.number) AS tree
    JOIN message ON message.number = tree.number
    UNION ALL
    SELECT request.id FROM wanted JOIN request ON request.session = wanted.number
"""
_KNOWN = """
    SELECT id FROM message WHERE id = ANY (%(ids)s)
    UNION ALL
    SELECT id FROM request WHERE id = ANY (%(ids)s) AND (seconds > 0 OR error <> '')
"""
# all of what follows sees the session at one moment
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_STATE = """
    WITH place AS MATERIALIZED (SELECT *, last_sealed(head) AS sealed FROM seen(%(session)s))
    SELECT place.pins, place.excluded, place.notes, place.plan, place.servers, coalesce(tip.id, ''), asked.id,
        place.asked_call
    FROM place LEFT JOIN message AS tip ON tip.number = place.sealed
    LEFT JOIN message AS asked ON asked.number = place.asked_by
"""
_MESSAGES = f"""
    SELECT {MESSAGE_COLUMNS}, coalesce(above.id, ''), coalesce(said.id, place.id), (
        SELECT json_agg(json_build_array(path, action, sha256) ORDER BY file.number)
        FROM file WHERE file.message = message.number
    )
    FROM seen(%(session)s) AS place CROSS JOIN LATERAL tree_of(place.number) AS tree
    JOIN message ON message.number = tree.number LEFT JOIN message AS above ON above.number = message.parent
    LEFT JOIN session AS said ON said.number = message.session
    WHERE message.id <> ALL (%(without)s) ORDER BY message.number
"""  # noqa: S608 - our own names
_BASES = """
    SELECT basis.digest, basis.value FROM (
        SELECT DISTINCT request.owner, request.settings_digest FROM seen(%(session)s) AS place
        JOIN request ON request.session = place.number WHERE request.id <> ALL (%(without)s)
    ) AS used JOIN basis ON basis.owner = used.owner AND basis.digest = used.settings_digest
"""
_COPY = (directory.OF_ID, _STATE, _MESSAGES, summaries.OF_SESSION, requests.OF_SESSION, _BASES)

_ADOPT_SESSION = "SELECT adopt_session(%(store)s, %(copy)s)"
_ADOPT_MESSAGES = "SELECT adopt_messages(%(session)s, %(messages)s)"
_ADOPT_REQUESTS = "SELECT adopt_requests(%(session)s, %(requests)s, %(bases)s)"
_ADOPT_STATE = "SELECT adopt_state(%(copy)s)"


def ids_in(database: Database, session_id: str) -> list[str]:
    """Return the ids of the messages and requests of a session and of its tasks."""
    return [found for (found,) in database.run(_IDS, {"session": pack(session_id)})]


def missing(database: Database, ids: Iterable[str]) -> list[str]:
    """Return those ids that no message has, nor any request that is finished."""
    wanted = list(ids)
    known = {found for (found,) in database.run(_KNOWN, {"ids": list(map(pack, wanted))})}
    return [one for one in wanted if one not in known]


def copy_of(database: Database, session_id: str, without: Collection[str]) -> SessionCopy:
    """Return a session with all that belongs to it, up to what is still being written."""
    wanted = [session_id, *(task.id for task in directory.tasks(database, session_id))]
    left_out = list(map(pack, without))
    statements: list[tuple[str, Values]] = [(_SNAPSHOT, {})]
    for one in wanted:
        values = {"id": pack(one), "session": pack(one), "without": left_out}
        statements += [(statement, values) for statement in _COPY]
    _, *found = database.run_together(statements)
    each = len(_COPY)
    session, *tasks = [_read(found[at : at + each]) for at in range(0, len(found), each)]
    return replace(session, tasks=tuple(tasks))


def _read(found: list[list[Row]]) -> SessionCopy:
    """Build a copy of the rows of `_COPY`."""
    infos, ((*state, head, asked_by, asked_call),), placed, summarized, logged, bases = found
    return SessionCopy(
        info=replace(directory.read(infos[0]), head=head),
        state=directory.read_state(state),
        messages=[_placed(row) for row in placed],
        summaries=[summaries.read(row) for row in summarized],
        requests=[requests.read(row) for row in logged],
        bases={digest: cast(JsonObject, unpack_json(value)) for digest, value in bases},
        asked_by=None if asked_by is None else AskedBy(asked_by, asked_call),
    )


def _placed(row: Row) -> PlacedMessage:
    *_, parent, session, files = row
    touched = [FileTouch(unpack(path), action, sha256) for path, action, sha256 in files or ()]
    return PlacedMessage(read_message(row), parent, session, unpack_counts(row[COUNTS]), touched)


def adopt(database: Database, store: str, copy: SessionCopy) -> SessionInfo:
    """Store what is new of another store's session, and of its tasks, in one transaction."""
    statements = [one for each in (copy, *copy.tasks) for one in _statements(store, each)]
    *_, (row,) = database.run_together([*statements, (directory.OF_ID, {"id": copy.info.id})])
    return directory.read(row)


def _statements(store: str, copy: SessionCopy) -> Iterator[tuple[str, Values]]:
    session = require_id(copy.info.id, "session")
    whole = json.dumps(_session_columns(copy))
    yield _ADOPT_SESSION, {"store": store, "copy": whole}
    for part in _parts(_message_columns(placed) for placed in copy.messages):
        yield _ADOPT_MESSAGES, {"session": session, "messages": part}
    bases = json.dumps({digest: pack_json(value) for digest, value in copy.bases.items()})
    for part in _parts(requests.columns(record) for record in copy.requests):
        yield _ADOPT_REQUESTS, {"session": session, "requests": part, "bases": bases}
        bases = "{}"
    yield _ADOPT_STATE, {"copy": whole}


def _parts(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield arrays of JSON that one statement can take."""
    part: list[str] = []
    size = 0
    for row in rows:
        part.append(json.dumps(row))
        size += len(part[-1])
        if size >= _PART:
            yield f"[{','.join(part)}]"
            part, size = [], 0
    if part:
        yield f"[{','.join(part)}]"


def _session_columns(copy: SessionCopy) -> dict[str, Any]:
    info, state, asked_by = copy.info, copy.state, copy.asked_by
    shared = [placed.message.id for placed in copy.messages if placed.session != info.id]
    changes = directory.changed_columns(
        {
            "title": info.title, "title_given": info.title_given, "model": info.model,
            "api_base": info.api_base, "effort": info.effort, "rolling": info.rolling,
            "summary_noted": info.summary_noted, "pins": state.pins, "excluded": state.excluded,
            "notes": state.notes, "plan": state.plan, "servers": state.servers,
        },
    )  # fmt: skip
    return changes | {
        "id": info.id,
        "short": pack(info.short),
        "folder": pack(info.folder),
        "parent": pack(info.parent),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "head": pack(info.head),
        # those that a fork shares are one line, and it begins at the last of them
        "forked_at": shared[-1] if shared else "",
        "asked_by": "" if asked_by is None else pack(asked_by.reply_id),
        "asked_call": 0 if asked_by is None else asked_by.call,
        "summaries": [summaries.columns(summary) for summary in copy.summaries],
    }


def _message_columns(placed: PlacedMessage) -> dict[str, Any]:
    require_id(placed.message.id, "message")
    return message_columns(placed.message) | {
        "parent": pack(placed.parent),
        "session": pack(placed.session),
        "counts": pack_counts(placed.counts),
        "touched": [[pack(touch.path), touch.action, touch.sha256] for touch in placed.files],
    }
