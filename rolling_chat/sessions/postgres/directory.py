"""The sessions in PostgreSQL: made, found, listed, changed, forked, and where each stands in its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rolling_chat.messages import Json
from rolling_chat.sessions.ids import is_id, new_id
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.rows import pack, pack_json, unpack, unpack_json
from rolling_chat.sessions.records import (
    AskedBy,
    LeftBranch,
    SessionAmbiguous,
    SessionChanges,
    SessionInfo,
    SessionNotFound,
    SessionState,
    StoreError,
)
from rolling_chat.sessions.titles import says_something
from rolling_chat.text import one_line

GIVEN_TITLE_CHARACTERS = 200

_LISTED = 5
_PREVIEW_CHARACTERS = 200

_INFO = """
    SELECT session.id, session.title, session.folder, session.model, coalesce(tip.depth, 0),
        EXISTS (SELECT FROM summary WHERE summary.session = session.number)
            AND coalesce((newest_summary(session.number, session.head)).text, '') <> '',
        session.rolling, session.created_at, session.updated_at, coalesce(tip.id, ''), session.title_given,
        session.parent, session.summary_noted,
        CASE WHEN session.api_base = '' OR session.api_base_by = session_user THEN session.api_base END,
        session.effort, coalesce(asking.id, ''),
        session.short
    FROM session LEFT JOIN message AS tip ON tip.number = session.head
    LEFT JOIN message AS asked ON asked.number = session.asked_by
    LEFT JOIN session AS asking ON asking.number = asked.session
"""
# tasks are found in their session; whoever reads all rows, as an administrator does, lists his own
_LISTED_ONES = """
    session.asked_by IS NULL AND session.is_spoken_in AND session.number IN (
        SELECT mine.number FROM session AS mine WHERE mine.owner = session_user
        UNION ALL SELECT share.session FROM share WHERE share.member = session_user)
"""
_LISTED_IN_FOLDER = """
    session.asked_by IS NULL AND session.is_spoken_in AND (session.owner = session_user
        OR session.number IN (SELECT share.session FROM share WHERE share.member = session_user))
    AND session.folder_key = md5(%(folder)s)::uuid AND session.folder = %(folder)s
"""
_NEWEST_FIRST = " ORDER BY session.updated_at DESC, session.number DESC"
_CREATE = """
    INSERT INTO session (
        id, short, title, title_given, title_says, folder, model, api_base, rolling, parent, asked_by,
        asked_call, created_at, updated_at
    ) VALUES (
        %(id)s, right(%(id)s, 8), %(title)s, %(title)s <> '', false, %(folder)s, %(model)s, %(api_base)s,
        %(rolling)s, %(parent)s,
        CASE WHEN %(asked_by)s::text IS NOT NULL THEN message_number(%(asked_by)s) END, %(asked_call)s,
        %(now)s, %(now)s
    ) ON CONFLICT (id) DO NOTHING
"""
OF_ID = f"{_INFO} WHERE session.id = %(id)s"
"""The session `id`, for `read`."""
_LEAVES = """
    WITH place AS MATERIALIZED (SELECT number, head, forked_at FROM seen(%(session)s)), ends AS (
        SELECT leaf.number, 0 AS is_fork FROM place JOIN message AS leaf ON leaf.session = place.number
        WHERE NOT EXISTS (SELECT FROM message AS child WHERE child.parent = leaf.number
                AND child.session = place.number)
            AND NOT EXISTS (SELECT FROM growing WHERE growing.message = leaf.number)
        UNION ALL SELECT forked_at, 1 FROM place WHERE forked_at IS NOT NULL
        UNION ALL SELECT head, -1 FROM place WHERE head IS NOT NULL
    )
    SELECT ends.is_fork, message.id, message.depth, message.created_at,
        (SELECT json_agg(json_build_array(line.run, line.first, line.last))
            FROM line_of(message.number) AS line)
    FROM ends JOIN message USING (number) ORDER BY ends.is_fork, message.number DESC
"""
_BEGINS = """
    SELECT left(message.content, %(most)s)
    FROM unnest(%(runs)s::bigint[], %(firsts)s::int[], %(lasts)s::int[]) AS own (run, first, last)
    JOIN message ON message.run = own.run AND message.depth BETWEEN own.first AND own.last
    ORDER BY (message.role = 'user') DESC, message.depth LIMIT 1
"""
_END = """
    SELECT tip.id FROM seen(%(session)s) AS place
    CROSS JOIN (SELECT message_number(%(message)s) AS number) AS wanted
    JOIN message AS tip ON tip.number = place.head
    WHERE is_on_branch(wanted.number, tip.number)
"""


def create(
    database: Database, columns: Mapping[str, Any], asked_by: AskedBy | None, id: str, now: float
) -> SessionInfo:
    """Add the row of an empty session, with an id of its own if it is given none."""
    if id and (not is_id(id) or database.run("SELECT 1 FROM session WHERE id = %(id)s", {"id": id})):
        raise StoreError(f"{one_line(id, 40)!r} is no id for a new session")
    title = pack(one_line(columns["title"], GIVEN_TITLE_CHARACTERS))
    values = {name: pack(value) if isinstance(value, str) else value for name, value in columns.items()} | {
        "id": id or new_id(),
        "title": title,
        "asked_by": None if asked_by is None else pack(asked_by.reply_id),
        "asked_call": 0 if asked_by is None else asked_by.call,
        "now": now,
    }
    database.run(_CREATE, values)
    return exact(database, values["id"])


def exact(database: Database, id: str) -> SessionInfo:
    """Return a session. Raises SessionNotFound."""
    rows = database.run(OF_ID, {"id": pack(id)})
    if not rows:
        raise SessionNotFound(f"there is no session {one_line(id, 40)!r}; it may have been deleted")
    return read(rows[0])


# ways of naming a session; the first that any is met by counts
_WAYS = (
    "session.short = %(start)s",
    "session.short BETWEEN %(start)s AND %(last)s",
    "session.id BETWEEN %(start)s AND %(last)s",
    "session.reversed BETWEEN %(end)s AND %(first)s",
)


def find(database: Database, name: str) -> SessionInfo:
    """Return the one session that goes by a name: the start of its short id or id, or the end.

    Raises SessionNotFound, SessionAmbiguous.
    """
    start = pack(name.strip().lower())
    if is_id(start) and (found := database.run(OF_ID, {"id": start})):
        return read(found[0])
    said = repr(one_line(name, 40))
    behind = "\U0010ffff"  # all that begins alike
    values = {"start": start, "last": start + behind, "end": start[::-1], "first": start[::-1] + behind}
    rows: list[Row] = []
    for way in _WAYS if start else ():
        rows = rows or database.run(
            f"{_INFO} WHERE {way} {_NEWEST_FIRST} LIMIT %(most)s", {**values, "most": _LISTED + 1}
        )
    if len(rows) == 1:
        return read(rows[0])
    if rows:
        raise SessionAmbiguous(f"several sessions match {said}: {_names(rows)}")
    newest = database.run(
        f"{_INFO} WHERE {_LISTED_ONES} {_NEWEST_FIRST} LIMIT %(most)s", {"most": _LISTED + 1}
    )
    there_is = f"there are: {_names(newest)}" if newest else "there are none yet"
    raise SessionNotFound(f"no session matches {said}; {there_is}")


def listed(database: Database, folder: str | None, limit: int | None) -> list[SessionInfo]:
    """Return the sessions that have messages, newest first."""
    where = f"{_INFO} WHERE {_LISTED_ONES if folder is None else _LISTED_IN_FOLDER}"
    values = {
        "folder": None if folder is None else pack(folder),
        "most": None if limit is None else max(limit, 0),
    }
    return [read(row) for row in database.run(f"{where} {_NEWEST_FIRST} LIMIT %(most)s", values)]


def tasks(database: Database, session_id: str) -> list[SessionInfo]:
    """Return the sessions of the tasks that the calls of a session began, oldest first."""
    statement = (
        f"{_INFO} WHERE session.number IN (SELECT tasks_of((seen(%(id)s)).number)) ORDER BY session.number"
    )
    return [read(row) for row in database.run(statement, {"id": pack(session_id)})]


def task_of_call(database: Database, asked_by: AskedBy) -> SessionInfo | None:
    """Return the session of the newest task that was begun for a call; None if there is none."""
    statement = (
        f"{_INFO} WHERE session.asked_by = (SELECT number FROM message WHERE id = %(reply)s)"  # noqa: S608
        " AND session.asked_call = %(call)s ORDER BY session.number DESC LIMIT 1"
    )
    rows = database.run(statement, {"reply": pack(asked_by.reply_id), "call": asked_by.call})
    return read(rows[0]) if rows else None


def state(database: Database, session_id: str) -> SessionState:
    """Return the stored pins, exclusions and plan of a session."""
    statement = "SELECT pins, excluded, notes, plan, servers FROM seen(%(id)s)"
    return read_state(database.row(statement, {"id": pack(session_id)}))


def read_state(row: Sequence[str]) -> SessionState:
    """Build a state from its columns."""
    pins, excluded, notes, plan, servers = map(unpack_json, row)
    return SessionState(
        pins=tuple(pins), excluded=tuple(excluded), notes=dict(notes), plan=plan, servers=servers
    )


def change(database: Database, id: str, store: str, changes: SessionChanges) -> SessionInfo:
    """Change the columns of a session that `changes` names. A title set so is the user's own."""
    columns = changed_columns(changes)
    if not columns:
        return exact(database, id)
    settings = ", ".join(
        f"{name} = {'message_number(%(head)s)' if name == 'head' and value else f'%({name})s'}"
        for name, value in columns.items()
    )
    # the rows of a statement's own change are not seen by the rest of it: what was changed comes back with it
    statement = f"""
        WITH changed AS (
            UPDATE session SET {settings} FROM opened(%(id)s, %(store)s) AS place
            WHERE session.number = place.number RETURNING session.*
        ), told AS (SELECT tell_followers(number, id) FROM changed)
        {_INFO.replace("FROM session LEFT JOIN", "FROM changed AS session CROSS JOIN told LEFT JOIN", 1)}
    """  # noqa: S608 - our own names
    return read(database.row(statement, {**columns, "id": pack(id), "store": store}))


def left_branches(database: Database, session_id: str) -> list[LeftBranch]:
    """Return the branches that are not the session's present one, the one last written to first."""
    rows = database.run(_LEAVES, {"session": pack(session_id)})
    covered: dict[int, int] = {}  # by run, how deep it is known
    branches: list[LeftBranch] = []
    for place, end, depth, written_at, ranges in rows:
        own = [
            (run, max(first, covered.get(run, 0) + 1), last)
            for run, first, last in ranges
            if last > covered.get(run, 0)
        ]
        covered |= {run: last for run, _, last in own}
        if place < 0 or not own:
            continue  # the present one, or one that another goes on from
        runs, firsts, lasts = zip(*own, strict=True)
        values = {"runs": [*runs], "firsts": [*firsts], "lasts": [*lasts], "most": 8 * _PREVIEW_CHARACTERS}
        (begins,) = database.row(_BEGINS, values)
        branches.append(
            LeftBranch(
                head=end,
                messages=depth,
                own=sum(last - first + 1 for _, first, last in own),
                written_at=written_at,
                begins=one_line(unpack(begins)[: 4 * _PREVIEW_CHARACTERS], _PREVIEW_CHARACTERS),
            )
        )
    return branches


def end_of_branch(database: Database, session_id: str, message: str) -> str:
    """Return the last message of the branch with `message` in it: the present one, else the newest.

    Raises StoreError for a message of another session.
    """
    rows = database.run(_END, {"session": pack(session_id), "message": pack(message)})
    if rows:
        return str(rows[0][0])
    for branch in left_branches(database, session_id):
        if is_on_branch(database, message, branch.head):
            return branch.head
    raise StoreError(f"message {message!r} is not of this session")


def is_on_branch(database: Database, message: str, head: str) -> bool:
    """Say whether `message` is `head` or one of its ancestors."""
    statement = """
        SELECT coalesce(is_on_branch((SELECT number FROM message WHERE id = %(message)s),
            (SELECT number FROM message WHERE id = %(head)s)), false)
    """
    return bool(database.row(statement, {"message": pack(message), "head": pack(head)})[0])


def move_head(database: Database, session_id: str, *, store: str, head: str, model: str, now: float) -> Json:
    """Make another message of its tree a session's newest; return the plan that it was sent by."""
    statement = "SELECT move_head(%(session)s, %(store)s, %(head)s, %(model)s, %(now)s)"
    values = {
        "session": pack(session_id),
        "store": store,
        "head": pack(head),
        "model": pack(model),
        "now": now,
    }
    (plan,) = database.row(statement, values)
    return None if plan is None else unpack_json(plan)


def changed_columns(changes: SessionChanges) -> dict[str, Any]:
    """Return the columns that changes of a session come to."""
    columns: dict[str, Any] = {}
    for key, value in changes.items():
        match key, value:
            case "title", str():
                title = one_line(value, GIVEN_TITLE_CHARACTERS)
                columns |= {
                    "title": pack(title),
                    "title_says": says_something(title),
                    "title_given": changes.get("title_given", True),
                }
            case (("title_given" | "rolling" | "summary_noted"), bool()):
                columns[key] = value
            case "head", str():
                columns["head"] = pack(value) or None
            case (("model" | "api_base" | "effort"), str()):
                columns[key] = pack(value)
            case (("api_base" | "effort"), None):
                columns[key] = None
            case (("pins" | "excluded"), Sequence()):
                columns[key] = pack_json(list(value))
            case (("notes" | "servers"), Mapping()):
                columns[key] = pack_json(dict(value))
            case "plan", _:
                columns[key] = pack_json(value)
            case _:
                raise TypeError(f"a session has no {key} of type {type(value).__name__}")
    return columns


def read(row: Row) -> SessionInfo:
    """Build a session from a row of `OF_ID`."""
    (
        session_id, title, folder, model, messages, has_summary, rolling, created_at, updated_at, head,
        title_given, parent, summary_noted, api_base, effort, task_of, short,
    ) = row  # fmt: skip
    return SessionInfo(
        id=session_id,
        title=unpack(title),
        folder=unpack(folder),
        model=unpack(model),
        messages=messages,
        has_summary=has_summary,
        rolling=rolling,
        created_at=created_at,
        updated_at=updated_at,
        head=head,
        title_given=title_given,
        parent=parent,
        summary_noted=summary_noted,
        api_base=None if api_base is None else unpack(api_base),
        effort=None if effort is None else unpack(effort),
        task_of=task_of,
        short=short,
    )


def _names(rows: Sequence[Row]) -> str:
    listed = [read(row) for row in rows[:_LISTED]]
    are_told_apart = len({info.short for info in listed}) == len(listed)
    named = ", ".join(
        f"{info.short if are_told_apart else info.id} ({one_line(info.title, 30) or 'untitled'})"
        for info in listed
    )
    return named + (" and more" if len(rows) > _LISTED else "")
