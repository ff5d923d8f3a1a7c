"""Where a session stands in its tree: the head moved, and the branches that it was moved away from.

Messages and their parents are never touched here. Every function works inside the caller's
transaction; `session` is a session's row number, `head` that of a message, None for before the first.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

from rolling_chat.messages import Json
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.records import LeftBranch, StoreError
from rolling_chat.sessions.sqlite.rows import message_id, pack, unpack, unpack_json, update
from rolling_chat.text import one_line

_PREVIEW_CHARACTERS = 200

_ABOVE = """
    WITH RECURSIVE branch (number) AS (
        SELECT ?
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent IS NOT NULL
    )
"""

_DOWN_TO = """
    WITH RECURSIVE branch (number) AS (
        SELECT :head
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent >= :lowest
    )
    SELECT number FROM branch
"""


class _Line:
    """A part of a branch that was walked, without a gap: the row numbers of its messages, ascending.

    What stands above a message never changes, so a line stays true; it grows at both ends when it is asked.
    """

    def __init__(self, head: int) -> None:
        self._numbers = array("q", [head])

    def __contains__(self, message: int) -> bool:
        at = bisect_left(self._numbers, message)
        return at < len(self._numbers) and self._numbers[at] == message

    def reach_up(self, connection: sqlite3.Connection, head: int) -> bool:
        """Grow up to `head`; return False, and change nothing, where it is not on this line."""
        top = self._numbers[-1]
        if head <= top:
            return head in self
        new = _walk(connection, head, top)
        if new[0] != top:
            return False
        self._numbers.extend(new[1:])
        return True

    def reach_down(self, connection: sqlite3.Connection, lowest: int) -> None:
        """Grow down to the messages numbered `lowest` and above."""
        if lowest < self._numbers[0]:
            self._numbers = _walk(connection, self._numbers[0], lowest) + self._numbers[1:]


_LINES: WeakKeyDictionary[sqlite3.Connection, _Line] = WeakKeyDictionary()
"""The line that was asked about last: nearly always that of the session which is open."""


class Place(NamedTuple):
    """A message's position in the tree: its row, its parent, its role and the like."""

    number: int
    role: str


def move(connection: sqlite3.Connection, session: int, head: int | None, model: str, now: float) -> Json:
    """Make `head` the newest message of the session's branch; return the plan stored for it.

    Raises StoreError for a message that is not of the session's tree.
    """
    if head is not None and not _is_of(connection, session, head):
        raise StoreError(f"message {message_id(connection, head)!r} is not of this session")
    plan = _plan_at(connection, session, head, model)
    changes = {"head": head, "plan": "null" if plan is None else plan, "updated_at": now}
    update(connection, "session", session, changes)
    return None if plan is None else unpack_json(plan)


def is_on_branch(connection: sqlite3.Connection, message: int, head: int | None) -> bool:
    """Return whether `message` is `head` or one of its ancestors.

    `head` must be committed: what was walked is remembered. A session is asked again and again, each time
    a little further on or back: to walk the whole way takes some 10 ms at 10,000 messages.
    """
    if head is None or message > head:
        return False
    line = _LINES.get(connection)
    if line is None or not line.reach_up(connection, head):
        line = _LINES[connection] = _Line(head)
    line.reach_down(connection, message)
    return message in line


def _walk(connection: sqlite3.Connection, head: int, lowest: int) -> array[int]:
    """Return the numbers of `head` and of those above it in the tree down to `lowest`, ascending."""
    # a child's number is above its parent's
    rows = connection.execute(_DOWN_TO, {"head": head, "lowest": lowest})
    return array("q", reversed([row[0] for row in rows]))


def is_blank(connection: sqlite3.Connection, session: int) -> bool:
    """Return whether the session never had a message, on any branch."""
    row = connection.execute(
        "SELECT head IS NULL AND forked_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM message WHERE session = :n) FROM session WHERE number = :n",
        {"n": session},
    ).fetchone()
    return bool(row[0])


def left_branches(connection: sqlite3.Connection, session: int) -> list[LeftBranch]:
    """Return the branches that are not the session's present one, the one last written to first."""
    row = connection.execute("SELECT head, forked_at FROM session WHERE number = ?", (session,)).fetchone()
    here = {place.number for place in places(connection, row["head"])}
    ends = [
        found["number"]
        for found in connection.execute(
            "SELECT number FROM message AS leaf WHERE session = :s AND NOT EXISTS"
            " (SELECT 1 FROM message WHERE parent = leaf.number AND session = :s)"
            " AND number NOT IN (SELECT message FROM growing) ORDER BY number DESC",
            {"s": session},
        )
        if found["number"] not in here
    ]
    branches: list[LeftBranch] = []
    covered = set(here)
    forked = [row["forked_at"]] if row["forked_at"] is not None else []
    for end in [*ends, *forked]:
        if end in covered:  # a branch that another goes on from
            continue
        own = _places_until(connection, end, covered)
        covered.update(place.number for place in own)
        branches.append(_left_branch(connection, end, own))
    return branches


def places(connection: sqlite3.Connection, head: int | None) -> list[Place]:
    """Return the positions of a branch's messages from `head` up to the root, without their text."""
    if head is None:
        return []
    statement = f"{_ABOVE} SELECT number, role FROM branch JOIN message USING (number)"  # noqa: S608 - our own
    return [Place(*row) for row in connection.execute(statement, (head,))]


def _left_branch(connection: sqlite3.Connection, end: int, own: list[Place]) -> LeftBranch:
    """Return the branch that ends at `end`; `own` is what no branch before it has, newest first."""
    first = next((place.number for place in reversed(own) if place.role == "user"), own[-1].number)
    leaf = connection.execute("SELECT id, depth, created_at FROM message WHERE number = ?", (end,)).fetchone()
    text = connection.execute("SELECT content FROM message WHERE number = ?", (first,)).fetchone()
    return LeftBranch(
        head=unpacked(leaf["id"]),
        messages=leaf["depth"],
        own=len(own),
        written_at=leaf["created_at"],
        begins=one_line(unpack(text["content"])[: 4 * _PREVIEW_CHARACTERS], _PREVIEW_CHARACTERS),
    )


def _places_until(connection: sqlite3.Connection, head: int, stop: set[int]) -> list[Place]:
    """Return the branch from `head` up to, and without, the first message that is in `stop`."""
    places: list[Place] = []
    number: int | None = head
    while number is not None and number not in stop:
        row = connection.execute("SELECT parent, role FROM message WHERE number = ?", (number,)).fetchone()
        places.append(Place(number, row["role"]))
        number = row["parent"]
    return places


def _is_of(connection: sqlite3.Connection, session: int, message: int) -> bool:
    row = connection.execute("SELECT session FROM message WHERE number = ?", (message,)).fetchone()
    if row is None:
        return False
    if row["session"] == session:
        return True
    at = connection.execute("SELECT head, forked_at FROM session WHERE number = ?", (session,)).fetchone()
    return any(is_on_branch(connection, message, place) for place in (at["head"], at["forked_at"]))


def _plan_at(
    connection: sqlite3.Connection, session: int, head: int | None, model: str
) -> str | bytes | None:
    """Return the plan of the nearest request at or above `head`, as it is stored; None if there is none.

    Of a fork, the requests of the session that it shares messages with count as well. Walks up only as far
    as that request: the way to the root takes some 10 ms at 10,000 messages.
    """
    if head is None:
        return None
    above: int | None = head
    for request, place in _planned_heads(connection, session, head, model):
        while above is not None and above > place:
            above = _parent(connection, above)
        if above is None:
            return None
        if above == place:
            row = connection.execute("SELECT plan FROM request WHERE number = ?", (request,)).fetchone()
            return cast("str | bytes", row["plan"])
    return None


def _planned_heads(
    connection: sqlite3.Connection, session: int, head: int, model: str
) -> list[tuple[int, int]]:
    """Return each request with a plan that may stand above `head`, with its own head, the newest first."""
    makers = _makers(connection, session)
    statement = f"""
        SELECT number, head FROM request
        WHERE session IN ({", ".join("?" * len(makers))}) AND model = ? AND plan != 'null' AND head <= ?
        ORDER BY head DESC, number DESC
    """  # noqa: S608 - our own names
    return [tuple(row) for row in connection.execute(statement, (*makers, pack(model), head))]


def _makers(connection: sqlite3.Connection, session: int) -> list[int]:
    """Return the session and those that it was forked from, whose messages it shares."""
    makers = [session]
    while True:
        row = connection.execute(
            "SELECT message.session FROM session JOIN message ON message.number = session.forked_at"
            " WHERE session.number = ?",
            (makers[-1],),
        ).fetchone()
        if row is None or row[0] in makers:
            return makers
        makers.append(row[0])


def _parent(connection: sqlite3.Connection, message: int) -> int | None:
    row = connection.execute("SELECT parent FROM message WHERE number = ?", (message,)).fetchone()
    return cast("int | None", row["parent"])
