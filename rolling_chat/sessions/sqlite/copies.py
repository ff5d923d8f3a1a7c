"""Sessions as they go from one store to another, with the ids that they have everywhere.

Every function works inside the caller's transaction; `session` is a session's row number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from rolling_chat.messages import FileTouch
from rolling_chat.sessions.columns import pack_counts
from rolling_chat.sessions.ids import is_id, packed, unpacked
from rolling_chat.sessions.pictures_apart import put_away
from rolling_chat.sessions.records import (
    AskedBy,
    PlacedMessage,
    RequestRecord,
    SessionCopy,
    StoredSummary,
)
from rolling_chat.sessions.sqlite import (
    directory,
    file_uses,
    kept_pictures,
    requests,
    summary_rows,
    tree,
)
from rolling_chat.sessions.sqlite.rows import (
    insert,
    message_columns,
    message_id,
    message_number,
    pack,
    unpack,
    update,
)
from rolling_chat.sessions.values import require_id

# the messages on any branch of `:session`, those that it shares with the session it forked among them
_NUMBERS = """
    WITH RECURSIVE above (number) AS (
        SELECT head FROM session WHERE number = :session AND head IS NOT NULL
        UNION
        SELECT forked_at FROM session WHERE number = :session AND forked_at IS NOT NULL
        UNION
        SELECT number FROM message WHERE session = :session
        UNION
        SELECT message.parent FROM above JOIN message USING (number) WHERE message.parent IS NOT NULL
    )
    SELECT number, id FROM above JOIN message USING (number)
    WHERE number NOT IN (SELECT message FROM growing) ORDER BY number
"""
_KNOWN = """
    SELECT 1 FROM message WHERE id = :id
    UNION ALL SELECT 1 FROM request WHERE id = :id AND (seconds > 0 OR error != '')
"""
_PLACE = """
    SELECT parent.id AS parent, session.id AS session FROM message
    JOIN session ON session.number = message.session
    LEFT JOIN message AS parent ON parent.number = message.parent WHERE message.number = ?
"""
_AT_A_TIME = 500  # messages read by one statement


def ids_in(connection: sqlite3.Connection, session: int) -> list[str]:
    """Return the ids of the messages and requests of a session and of its tasks."""
    found: list[str] = []
    for one in (session, *directory.tasks_of(connection, session)):
        found += [unpacked(row[1]) for row in connection.execute(_NUMBERS, {"session": one})]
        rows = connection.execute("SELECT id FROM request WHERE session = ? ORDER BY number", (one,))
        found += [unpacked(row[0]) for row in rows]
    return found


def missing(connection: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return those ids that no message has, nor any request that is finished."""
    return [
        one for one in ids if not (is_id(one) and connection.execute(_KNOWN, {"id": packed(one)}).fetchone())
    ]


def copy_of(connection: sqlite3.Connection, session: int, without: Set[str]) -> SessionCopy:
    """Return a session with all that belongs to it, up to what is still being written."""
    logged = [one for one in requests.of_session(connection, session) if one.id not in without]
    digests = dict.fromkeys(one.settings_digest for one in logged)
    bases = {digest: requests.basis(connection, digest) for digest in digests}
    row = connection.execute(
        "SELECT session.head, message.id, session.asked_call FROM session"
        " LEFT JOIN message ON message.number = session.asked_by WHERE session.number = ?",
        (session,),
    ).fetchone()
    head = tree.last_sealed(connection, row["head"])
    return SessionCopy(
        info=replace(directory.info(connection, session), head=message_id(connection, head)),
        state=directory.state(connection, session),
        messages=_placed(connection, session, without),
        summaries=summary_rows.of_session(connection, session),
        requests=logged,
        bases={digest: value for digest, value in bases.items() if value is not None},
        asked_by=None if row["id"] is None else AskedBy(unpacked(row["id"]), row["asked_call"]),
        tasks=tuple(copy_of(connection, task, without) for task in directory.tasks_of(connection, session)),
    )


def _placed(connection: sqlite3.Connection, session: int, without: Set[str]) -> list[PlacedMessage]:
    rows = connection.execute(_NUMBERS, {"session": session})
    numbers = [number for number, key in rows if unpacked(key) not in without]
    placed: list[PlacedMessage] = []
    for at in range(0, len(numbers), _AT_A_TIME):
        part = numbers[at : at + _AT_A_TIME]
        read = tree.some(connection, part)
        for number, message in zip(part, read.messages, strict=True):
            where = connection.execute(_PLACE, (number,)).fetchone()
            placed.append(
                PlacedMessage(
                    message,
                    parent="" if where["parent"] is None else unpacked(where["parent"]),
                    session=where["session"],
                    counts=read.counts.get(message.id, {}),
                    files=_files(connection, number),
                )
            )
    return placed


def _files(connection: sqlite3.Connection, number: int) -> Sequence[FileTouch]:
    rows = connection.execute(
        "SELECT path, action, sha256 FROM file WHERE message = ? ORDER BY number", (number,)
    )
    return [FileTouch(unpack(row["path"]), row["action"], row["sha256"]) for row in rows]


def adopt(connection: sqlite3.Connection, session: int | None, copy: SessionCopy, now: float) -> int:
    """Add what is new of a session of another store; `session` is its row here, None for none.

    Where both went on, the one that was written to last determines the head, and the session as
    a whole; the other branch is one that was left.
    """
    leads = session is None or directory.info(connection, session).updated_at <= copy.info.updated_at
    row = _add_session(connection, copy, now) if session is None else session
    for placed in copy.messages:
        _add_message(connection, row, copy.info.id, placed)
    if leads:
        _take_over(connection, row, copy)
    for record in copy.requests:
        _add_request(connection, row, record, copy)
    _add_summaries(connection, row, copy.summaries)
    return row


def _add_session(connection: sqlite3.Connection, copy: SessionCopy, now: float) -> int:
    info = copy.info
    require_id(info.id, "session")
    made = directory.create(
        connection, folder=info.folder, model=info.model, rolling=info.rolling, title=info.title,
        parent=info.parent, api_base=info.api_base, asked_by=copy.asked_by, now=now, id=info.id,
    )  # fmt: skip
    row = directory.exact(connection, made.id)
    update(connection, "session", row, {"short": info.short, "created_at": info.created_at})
    return row


def _add_message(connection: sqlite3.Connection, session: int, id: str, placed: PlacedMessage) -> None:
    """Add a message of the session `id` below its parent, unless it is there."""
    key = packed(require_id(placed.message.id, "message"))
    owner = _owner(connection, placed.session, session)
    found = connection.execute("SELECT number FROM message WHERE id = ?", (key,)).fetchone()
    if found is not None:
        if placed.session == id:  # a fork may have come first, and brought what it shares
            update(connection, "message", found["number"], {"session": owner})
        return
    parent, depth = None, 0
    if placed.parent:
        parent = message_number(connection, placed.parent)
        depth = connection.execute("SELECT depth FROM message WHERE number = ?", (parent,)).fetchone()[0]
    _insert_message(connection, key, placed, {"session": owner, "parent": parent, "depth": depth + 1})


def _insert_message(
    connection: sqlite3.Connection, key: bytes, placed: PlacedMessage, place: dict[str, int | None]
) -> None:
    bare, pictures = put_away(placed.message)
    columns = {"id": key} | place | message_columns(bare) | {"counts": pack_counts(placed.counts)}
    number = insert(connection, "message", columns)
    kept_pictures.add(connection, number, pictures)
    file_uses.add(connection, number, placed.files)


def _owner(connection: sqlite3.Connection, id: str, session: int) -> int:
    """Return the row of the session in which a message was said: `session` if that is not here."""
    row = connection.execute("SELECT number FROM session WHERE id = ?", (id,)).fetchone()
    return session if row is None else int(row["number"])


def _take_over(connection: sqlite3.Connection, session: int, copy: SessionCopy) -> None:
    """Make a session as a whole what its copy is: its head, its title, its state."""
    info, state = copy.info, copy.state
    shared = [placed.message.id for placed in copy.messages if placed.session != info.id]
    directory.change(
        connection,
        session,
        {
            "title": info.title, "title_given": info.title_given, "model": info.model,
            "api_base": info.api_base, "effort": info.effort, "rolling": info.rolling,
            "head": info.head, "summary_noted": info.summary_noted, "pins": state.pins,
            "excluded": state.excluded, "notes": state.notes, "plan": state.plan, "servers": state.servers,
        },
    )  # fmt: skip
    columns = {"folder": pack(info.folder), "updated_at": info.updated_at}
    if shared:
        columns["forked_at"] = _deepest(connection, shared)
    update(connection, "session", session, columns)


def _deepest(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Return the message that stands deepest in the tree: where a fork begins, of what it shares."""
    statement = "SELECT depth, number FROM message WHERE id = ?"
    rows = [connection.execute(statement, (packed(shared),)).fetchone() for shared in ids]
    return int(max((row["depth"], row["number"]) for row in rows)[1])


def _add_request(
    connection: sqlite3.Connection, session: int, record: RequestRecord, copy: SessionCopy
) -> None:
    known = connection.execute("SELECT 1 FROM request WHERE id = ?", (packed(record.id),)).fetchone()
    if known is None:
        requests.add(connection, session, record, copy.bases.get(record.settings_digest))
    elif record.seconds or record.error:  # it may have been under way when it was copied before
        miss = (record.cache_miss, record.missed_tokens)
        requests.finish(
            connection, record.id, usage=record.usage, seconds=record.seconds, error=record.error, miss=miss
        )


def _add_summaries(connection: sqlite3.Connection, session: int, summaries: Iterable[StoredSummary]) -> None:
    """Add those that are not there; where both went on, theirs come behind ours."""
    here = summary_rows.of_session(connection, session)
    known = {_said(summary): summary.generation for summary in here}
    newest = max(known.values(), default=0)
    now_called: dict[int, int] = {}
    for summary in summaries:
        generation = known.get(_said(summary))
        if generation is None:
            is_free = summary.generation not in known.values()
            generation = summary.generation if is_free else newest + 1
            made_from = now_called.get(summary.made_from, summary.made_from)
            added = replace(summary, made_from=made_from)
            summary_rows.add(connection, session, added, generation, summary.created_at)
            known[_said(summary)] = generation
            newest = max(newest, generation)
        now_called[summary.generation] = generation


def _said(summary: StoredSummary) -> tuple[str, str, float]:
    return summary.through, summary.text, summary.created_at
