"""The sessions themselves: made, found, listed, changed, forked, deleted.

Every function works inside the caller's transaction; `session` is a session's row number.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rolling_chat.sessions.ids import is_id, new_id, short_of, unpacked
from rolling_chat.sessions.records import (
    AskedBy,
    SessionAmbiguous,
    SessionChanges,
    SessionInfo,
    SessionNotFound,
    SessionState,
    StoreError,
)
from rolling_chat.sessions.sqlite import summary_rows
from rolling_chat.sessions.sqlite.rows import (
    insert,
    message_number,
    pack,
    pack_json,
    unpack,
    unpack_json,
    update,
)
from rolling_chat.sessions.sqlite.text_index import is_damage
from rolling_chat.sessions.sqlite.tree import last_sealed
from rolling_chat.text import one_line

_log = logging.getLogger("rolling_chat.sessions")

GIVEN_TITLE_CHARACTERS = 200

_NAME = re.compile(r"[0-9a-z-]{1,40}")
_LISTED = 5
_LAST = "\U0010ffff"  # behind everything that begins alike

_SELECT = (
    "SELECT session.*, coalesce(message.depth, 0) AS messages, message.id AS head_id,"
    " coalesce(asking.id, '') AS task_of"
    " FROM session LEFT JOIN message INDEXED BY message_ids ON message.number = session.head"
    " LEFT JOIN message AS asked ON asked.number = session.asked_by"
    " LEFT JOIN session AS asking ON asking.number = asked.session"
)
_HAS_MESSAGE = "EXISTS (SELECT 1 FROM message AS said WHERE said.session = session.number)"
# also where everything was taken back: what was said is still there; tasks are found in their session
_SPOKEN_IN = (
    f"session.asked_by IS NULL AND (session.head IS NOT NULL OR session.forked_at IS NOT NULL"
    f" OR {_HAS_MESSAGE})"
)
_NEWEST_FIRST = " ORDER BY session.updated_at DESC, session.number DESC"


def create(
    connection: sqlite3.Connection,
    *,
    folder: str,
    model: str,
    rolling: bool,
    title: str,
    parent: str,
    api_base: str | None,
    asked_by: AskedBy | None,
    id: str,
    now: float,
) -> SessionInfo:
    """Add the row of an empty session, with an id of its own if it is given none."""
    given = one_line(title, GIVEN_TITLE_CHARACTERS)
    columns = {
        "title": given,
        "title_given": bool(given),
        "folder": pack(folder),
        "model": pack(model),
        "api_base": _optional(api_base),
        "rolling": rolling,
        "parent": parent,
        "created_at": now,
        "updated_at": now,
    }
    if asked_by is not None:
        columns |= {
            "asked_by": message_number(connection, asked_by.reply_id),
            "asked_call": asked_by.call,
        }
    return info(connection, _insert(connection, columns, id))


def find(connection: sqlite3.Connection, name: str) -> int:
    """Return the row of the one session that goes by a name: the start of its short id or id, or the end.

    Raises SessionNotFound, SessionAmbiguous.
    """
    wanted = name.strip().lower()
    rows = _named(connection, wanted) if _NAME.fullmatch(wanted) else []
    if len(rows) == 1:
        return int(rows[0]["number"])
    said = repr(one_line(name, 40))
    if rows:
        raise SessionAmbiguous(f"several sessions match {said}: {_names(rows)}")
    newest = connection.execute(f"{_SELECT} WHERE {_SPOKEN_IN} {_NEWEST_FIRST}").fetchmany(_LISTED + 1)
    there_is = f"there are: {_names(newest)}" if newest else "there are none yet"
    raise SessionNotFound(f"no session matches {said}; {there_is}")


def _named(connection: sqlite3.Connection, wanted: str) -> list[sqlite3.Row]:
    """Return the sessions of the first way of being named that any of them meets."""
    ways = (
        ("session.short = :first", wanted),
        ("session.short BETWEEN :first AND :last", wanted),
        ("session.id BETWEEN :first AND :last", wanted),
        ("session.reversed BETWEEN :first AND :last", wanted[::-1]),
    )
    for where, first in ways:
        statement = f"{_SELECT} WHERE {where} {_NEWEST_FIRST} LIMIT {_LISTED + 1}"
        rows = connection.execute(statement, {"first": first, "last": first + _LAST}).fetchall()
        if rows:
            return rows
    return []


def exact(connection: sqlite3.Connection, id: str) -> int:
    """Return the row of the session `id`. Raises SessionNotFound."""
    row = connection.execute("SELECT number FROM session WHERE id = ?", (pack(id),)).fetchone()
    if row is None:
        raise SessionNotFound(f"there is no session {one_line(id, 40)!r}; it may have been deleted")
    return int(row["number"])


def info(connection: sqlite3.Connection, session: int) -> SessionInfo:
    """Return a session's title, dates, model and size, as session lists show them."""
    row = connection.execute(f"{_SELECT} WHERE session.number = ?", (session,)).fetchone()
    return _info(row, has_summary=_has_summary(connection, row))


def state(connection: sqlite3.Connection, session: int) -> SessionState:
    """Return the stored pins, exclusions and plan of a session."""
    row = connection.execute("SELECT * FROM session WHERE number = ?", (session,)).fetchone()
    return SessionState(
        pins=tuple(unpack_json(row["pins"])),
        excluded=tuple(unpack_json(row["excluded"])),
        notes=dict(unpack_json(row["notes"])),
        plan=unpack_json(row["plan"]),
        servers=unpack_json(row["servers"]),
    )


def listed(connection: sqlite3.Connection, folder: str | None, limit: int | None) -> list[SessionInfo]:
    """Return the sessions that have messages, newest first."""
    where, values = f" WHERE {_SPOKEN_IN}", []
    if folder is not None:
        where, values = f"{where} AND session.folder = ?", [pack(folder)]
    most = -1 if limit is None else max(limit, 0)
    try:
        rows = connection.execute(f"{_SELECT}{where}{_NEWEST_FIRST} LIMIT ?", (*values, most))
        return [_info(row, has_summary=_has_summary(connection, row)) for row in rows]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        _log.error("messages are damaged; listing the sessions without looking at them: %s", error)
    where = where.replace(f" OR {_HAS_MESSAGE}", "")
    listing = f"SELECT session.*, 0 AS messages, NULL AS head_id, '' AS task_of FROM session{where}"  # noqa: S608 - ours
    statement = f"{listing}{_NEWEST_FIRST} LIMIT ?"
    return [_info(row, has_summary=False) for row in connection.execute(statement, (*values, most))]


def change(connection: sqlite3.Connection, session: int, changes: SessionChanges) -> None:
    """Change the columns of a session that `changes` names. A title set so is the user's own."""
    columns: dict[str, Any] = {}
    for key, value in changes.items():
        match key, value:
            case "title", str():
                title = one_line(value, GIVEN_TITLE_CHARACTERS)
                columns |= {"title": title, "title_given": changes.get("title_given", True)}
            case (("title_given" | "rolling" | "summary_noted"), bool()):
                columns[key] = value
            case "head", str():
                columns["head"] = message_number(connection, value) if value else None
            case "model", str():
                columns[key] = pack(value)
            case "api_base", (str() | None):
                columns[key] = _optional(value)
            case "effort", (str() | None):
                columns[key] = value
            case (("pins" | "excluded"), Sequence()):
                columns[key] = pack_json(list(value))
            case (("notes" | "servers"), Mapping()):
                columns[key] = pack_json(dict(value))
            case "plan", _:
                columns[key] = pack_json(value)
            case _:
                raise TypeError(f"a session has no {key} of type {type(value).__name__}")
    if columns:
        update(connection, "session", session, columns)


def fork(connection: sqlite3.Connection, session: int, now: float) -> SessionInfo:
    """Add a session that shares the branch up to its last whole message, and the pipeline's state."""
    row = connection.execute("SELECT * FROM session WHERE number = ?", (session,)).fetchone()
    head = last_sealed(connection, row["head"])
    kept = (
        "title", "title_given", "folder", "model", "api_base", "effort", "rolling", "summary_noted", "pins",
        "excluded", "notes", "plan", "servers",
    )  # fmt: skip
    columns = {column: row[column] for column in kept} | {
        "head": head,
        "forked_at": head,
        "parent": row["id"],
        "created_at": now,
        "updated_at": now,
    }
    number = _insert(connection, columns)
    summary_rows.copy(connection, session, number, head)
    return info(connection, number)


def task_of_call(connection: sqlite3.Connection, asked_by: AskedBy) -> int | None:
    """Return the session of the newest task that was begun for a call; None if there is none."""
    row = connection.execute(
        "SELECT max(number) FROM session WHERE asked_by = ? AND asked_call = ?",
        (message_number(connection, asked_by.reply_id), asked_by.call),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def tasks_of(connection: sqlite3.Connection, session: int) -> list[int]:
    """Return the sessions of the tasks that the calls of a session began."""
    return [row[0] for row in connection.execute(f"{TASKS} ORDER BY task.number", {"session": session})]


# the sessions of the tasks of `:session`
TASKS = """
    SELECT task.number FROM session AS task JOIN message AS asked ON asked.number = task.asked_by
    WHERE asked.session = :session
"""


def delete(connection: sqlite3.Connection, session: int) -> None:
    """Delete a session, its messages and their tasks; what a fork stands on goes to the fork."""
    connection.execute("UPDATE session SET head = NULL, forked_at = NULL WHERE number = ?", (session,))
    for heir in connection.execute(_SHARED, {"session": session}).fetchall():
        connection.execute(_INHERIT, {"session": session, "shared": heir["shared"], "heir": heir["heir"]})
    for task in tasks_of(connection, session):
        delete(connection, task)
    connection.execute("DELETE FROM message WHERE session = ?", (session,))
    connection.execute("DELETE FROM session WHERE number = ?", (session,))


# the messages of one session that another stands on directly
_SHARED = """
    SELECT heir.number AS heir, message.number AS shared
    FROM session AS heir JOIN message ON message.number IN (heir.head, heir.forked_at)
    WHERE message.session = :session
    UNION
    SELECT child.session, message.number
    FROM message JOIN message AS child ON child.parent = message.number
    WHERE message.session = :session AND child.session != :session
    ORDER BY heir
"""

_INHERIT = """
    WITH RECURSIVE above (number) AS (
        SELECT number FROM message WHERE number = :shared AND session = :session
        UNION ALL
        SELECT parent.number
        FROM above JOIN message USING (number) JOIN message AS parent ON parent.number = message.parent
        WHERE parent.session = :session
    )
    UPDATE message SET session = :heir WHERE number IN above
"""


def _insert(connection: sqlite3.Connection, columns: dict[str, Any], id: str = "") -> int:
    made = id or new_id()
    if not is_id(made) or connection.execute("SELECT 1 FROM session WHERE id = ?", (made,)).fetchone():
        raise StoreError(f"{one_line(made, 40)!r} is no id for a new session")
    names = {"id": made, "short": short_of(made), "reversed": made[::-1]}
    return insert(connection, "session", names | columns)


def _has_summary(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
    newest = summary_rows.newest(connection, row["number"], row["head"])
    return newest is not None and bool(newest.text)


def _info(row: sqlite3.Row, *, has_summary: bool) -> SessionInfo:
    return SessionInfo(
        id=row["id"],
        title=unpack(row["title"]),
        folder=unpack(row["folder"]),
        model=unpack(row["model"]),
        messages=row["messages"],
        has_summary=has_summary,
        rolling=bool(row["rolling"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        head=unpacked(row["head_id"]) if row["head_id"] is not None else "",
        title_given=bool(row["title_given"]),
        parent=row["parent"],
        summary_noted=bool(row["summary_noted"]),
        api_base=None if row["api_base"] is None else unpack(row["api_base"]),
        effort=row["effort"],
        task_of=row["task_of"],
        short=row["short"],
    )


def _optional(text: str | None) -> str | bytes | None:
    return None if text is None else pack(text)


def _names(rows: Sequence[sqlite3.Row]) -> str:
    listed = rows[:_LISTED]
    names = [row["short"] for row in listed]
    if len(set(names)) < len(names):
        names = [row["id"] for row in listed]
    titles = [one_line(unpack(row["title"]), 30) or "untitled" for row in listed]
    named = ", ".join(f"{name} ({title})" for name, title in zip(names, titles, strict=True))
    return named + (" and more" if len(rows) > _LISTED else "")
