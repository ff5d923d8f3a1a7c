"""The messages: a tree that only grows, and the one reply in it that is still being written.

Every function works inside the caller's transaction; `session` is a session's row number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from rolling_chat.messages import Ending, FileTouch, MadeBy, Message, has_pictures
from rolling_chat.sessions.columns import pack_counts, unpack_counts
from rolling_chat.sessions.ids import is_id, new_id, packed, unpacked
from rolling_chat.sessions.pictures_apart import put_away
from rolling_chat.sessions.records import Counts, StoreError, Stretch
from rolling_chat.sessions.sqlite import file_uses, kept_pictures
from rolling_chat.sessions.sqlite.claims import Owner, is_left
from rolling_chat.sessions.sqlite.rows import (
    MESSAGE_COLUMNS,
    content_columns,
    insert,
    message_columns,
    message_id,
    message_number,
    pack,
    read_message,
    unpack,
    update,
)
from rolling_chat.sessions.titles import better_title
from rolling_chat.sessions.values import real, with_streamed

_BRANCH = f"""
    WITH RECURSIVE branch (number) AS (
        SELECT ?
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent IS NOT NULL
        LIMIT ?
    )
    SELECT {", ".join(MESSAGE_COLUMNS)} FROM branch JOIN message USING (number)
"""  # noqa: S608 - our own names

_NUMBERS = """
    WITH RECURSIVE branch (number) AS (
        SELECT ?
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent IS NOT NULL
    )
    SELECT number FROM branch
"""
_ABOVE = "SELECT parent, depth FROM message WHERE number = ?"
_GROWING = "SELECT message FROM growing WHERE message = (SELECT number FROM message WHERE id = ?)"

_ALL = -1


def branch(connection: sqlite3.Connection, head: int | None) -> list[Message]:
    """Return the messages from the root to `head`; a reply still growing has the text it has by now."""
    return [] if head is None else _messages(connection, _newest(connection, head, _ALL))


def stretch(connection: sqlite3.Connection, head: int | None, most: int | None) -> Stretch:
    """Return the newest of a branch, some `most` of its messages: results are never without their call."""
    messages, counts = list[Message](), dict[str, Mapping[str, int]]()
    before = 0
    while head is not None and (not messages or messages[0].role == "tool"):
        rows = _newest(connection, head, 1 if messages else _ALL if most is None else most)
        messages[:0] = _messages(connection, rows)
        counts |= _counts_in(rows)
        head, depth = connection.execute(_ABOVE, (rows[0][0],)).fetchone()
        before = depth - 1
    return Stretch(messages, message_id(connection, head), counts, before)


def numbers(connection: sqlite3.Connection, head: int) -> list[int]:
    """Return the row numbers of a branch from the root to `head`."""
    return sorted(row[0] for row in connection.execute(_NUMBERS, (head,)))


def some(connection: sqlite3.Connection, wanted: Sequence[int]) -> Stretch:
    """Return the messages in some rows, oldest first, as if nothing stood above them."""
    marks = ", ".join("?" * len(wanted))
    columns = ", ".join(MESSAGE_COLUMNS)
    statement = f"SELECT {columns} FROM message WHERE number IN ({marks}) ORDER BY number"  # noqa: S608 - our own
    rows = connection.execute(statement, tuple(wanted)).fetchall()
    return Stretch(_messages(connection, rows), "", _counts_in(rows))


def _counts_in(rows: Iterable[sqlite3.Row]) -> dict[str, Mapping[str, int]]:
    return {unpacked(row["id"]): found for row in rows if (found := unpack_counts(row[-1]))}


def _newest(connection: sqlite3.Connection, head: int, most: int) -> list[sqlite3.Row]:
    rows = connection.execute(_BRANCH, (head, most)).fetchall()
    # a child's number is above its parent's; SQL would sort the texts along with the numbers
    return sorted(rows, key=itemgetter(0))


def _messages(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> list[Message]:
    messages = [read_message(row) for row in rows]
    growing = {row[0] for row in connection.execute("SELECT message FROM growing")}
    for index, row in enumerate(rows):
        if has_pictures(messages[index]):
            messages[index] = kept_pictures.take_out(connection, row[0], messages[index])
        if row[0] in growing:
            messages[index] = with_streamed(messages[index], *_chunks(connection, row[0]))
    return messages


def append(
    connection: sqlite3.Connection,
    session: int,
    message: Message,
    now: float,
    touched: Iterable[FileTouch] = (),
) -> Message:
    """Add `message` below the session's head and move the head to it; `touched` as its tool did."""
    stored = replace(message, id=new_id(), created_at=real(message.created_at) or now)
    number = _add(connection, session, stored, now)
    file_uses.add(connection, number, touched)
    if message.role == "user":
        _derive_title(connection, session, number, message.text)
    return stored


def begin_reply(
    connection: sqlite3.Connection, session: int, made_by: MadeBy, owner: Owner, now: float
) -> str:
    """Add an empty reply below the head, to be written by `owner`; return its id."""
    # what a reply is that nobody comes back to seal
    reply = Message("assistant", id=new_id(), made_by=made_by, ending=Ending.CANCELLED, created_at=now)
    number = _add(connection, session, reply, now)
    insert(connection, "growing", {"message": number, **owner.columns()})
    return reply.id


def grow_reply(connection: sqlite3.Connection, id: str, text: str, reasoning: str) -> None:
    """Append streamed text to the stored row of a reply that is still growing."""
    # many times a second: one statement where all is well
    row = connection.execute(_GROWING, (packed(id) if is_id(id) else b"",)).fetchone()
    if row is None:
        message_number(connection, id)  # raises where there is no such message
        raise _closed(id)
    insert(connection, "chunk", {"message": row[0], "text": pack(text), "reasoning": pack(reasoning)})


def seal_reply(connection: sqlite3.Connection, number: int, message: Message, now: float) -> Message:
    """Seal a growing reply in the database as `message`, adding streamed text that is missing there."""
    _require_growing(connection, number)
    row = connection.execute(
        "SELECT session, provider, model, created_at FROM message WHERE number = ?", (number,)
    ).fetchone()
    sealed = replace(
        with_streamed(message, *_chunks(connection, number)),
        id=message_id(connection, number),
        made_by=message.made_by or MadeBy(unpack(row["provider"]), unpack(row["model"])),
        created_at=row["created_at"],
    )
    update(connection, "message", number, content_columns(sealed))
    connection.execute("DELETE FROM chunk WHERE message = ?", (number,))
    connection.execute("DELETE FROM growing WHERE message = ?", (number,))
    update(connection, "session", row["session"], {"updated_at": now})
    return sealed


def drop_reply(connection: sqlite3.Connection, number: int, now: float) -> None:
    """Delete a stored reply that never got a byte; one that did, or was answered, is sealed instead."""
    _require_growing(connection, number)
    used = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM chunk WHERE message = :n)"
        " OR EXISTS (SELECT 1 FROM message WHERE parent = :n)",
        {"n": number},
    ).fetchone()[0]
    if used:
        seal_reply(connection, number, Message("assistant", ending=Ending.CANCELLED), now)
        return
    connection.execute(
        "UPDATE session SET head = (SELECT parent FROM message WHERE number = :n) WHERE head = :n",
        {"n": number},
    )
    connection.execute("DELETE FROM message WHERE number = ?", (number,))


def seal_abandoned(connection: sqlite3.Connection, session: int, now: float) -> None:
    """Seal the replies in `session` whose writers are gone; one without a byte is taken back."""
    rows = connection.execute(
        "SELECT growing.*, session.updated_at AS seen FROM growing"
        " JOIN message ON message.number = growing.message"
        " JOIN session ON session.number = message.session WHERE session.number = ?",
        (session,),
    ).fetchall()
    for row in rows:
        if is_left(Owner.of(row).process, row["seen"], now):
            drop_reply(connection, row["message"], now)


def seal_owned(connection: sqlite3.Connection, owner: Owner, now: float) -> None:
    """Seal every reply that `owner` is still writing; one without a byte is taken back."""
    rows = connection.execute("SELECT message FROM growing WHERE store = ?", (owner.store,)).fetchall()
    for row in rows:
        drop_reply(connection, row["message"], now)


def last_sealed(connection: sqlite3.Connection, head: int | None) -> int | None:
    """Return the nearest message from `head` upwards that no longer grows."""
    while head is not None and _is_growing(connection, head):
        row = connection.execute("SELECT parent FROM message WHERE number = ?", (head,)).fetchone()
        head = row["parent"]
    return head


def save_counts(connection: sqlite3.Connection, counts: Counts) -> None:
    """Replace the token counts of messages, by id."""
    connection.executemany(
        "UPDATE message SET counts = ? WHERE id = ?",
        [(pack_counts(found), packed(key)) for key, found in counts.items() if is_id(key)],
    )


def _add(connection: sqlite3.Connection, session: int, message: Message, now: float) -> int:
    """Add a message with its pictures below the head and move the head to it; return its row."""
    row = connection.execute(
        "SELECT session.head, coalesce(message.depth, 0) AS depth"
        " FROM session LEFT JOIN message ON message.number = session.head WHERE session.number = ?",
        (session,),
    ).fetchone()
    bare, pictures = put_away(message)
    place = {"id": packed(message.id), "session": session, "parent": row["head"], "depth": row["depth"] + 1}
    number = insert(connection, "message", place | message_columns(bare))
    kept_pictures.add(connection, number, pictures)
    update(connection, "session", session, {"head": number, "updated_at": now})
    return number


def _derive_title(connection: sqlite3.Connection, session: int, message: int, text: str) -> None:
    """Title a session by what was said in it, unless the user has titled it."""
    row = connection.execute(
        "SELECT title, title_given, (SELECT parent IS NULL FROM message WHERE number = ?) AS begins"
        " FROM session WHERE number = ?",
        (message, session),
    ).fetchone()
    title = better_title(unpack(row["title"]), text, begins=bool(row["begins"]))
    if title and not row["title_given"]:
        update(connection, "session", session, {"title": title})


def _chunks(connection: sqlite3.Connection, number: int) -> tuple[str, str]:
    rows: Sequence[sqlite3.Row] = connection.execute(
        "SELECT text, reasoning FROM chunk WHERE message = ? ORDER BY number", (number,)
    ).fetchall()
    return "".join(unpack(row["text"]) for row in rows), "".join(unpack(row["reasoning"]) for row in rows)


def _is_growing(connection: sqlite3.Connection, number: int) -> bool:
    found = connection.execute("SELECT 1 FROM growing WHERE message = ?", (number,)).fetchone()
    return found is not None


def _require_growing(connection: sqlite3.Connection, number: int) -> None:
    if not _is_growing(connection, number):
        raise _closed(message_id(connection, number))


def _closed(id: str) -> StoreError:
    return StoreError(f"the reply {id!r} is closed; nothing more can be written to it")
