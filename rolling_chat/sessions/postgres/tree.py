"""The messages in PostgreSQL: a tree that only grows, and the replies that are still being written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rolling_chat.messages import Ending, FileTouch, MadeBy, Message
from rolling_chat.sessions.columns import pack_counts, unpack_counts
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.rows import (
    COUNTS,
    MESSAGE_COLUMNS,
    content_columns,
    message_columns,
    pack,
    read_message,
    unpack,
)
from rolling_chat.sessions.records import Counts, Stretch
from rolling_chat.sessions.values import real, with_streamed

_APPEND = "SELECT append(%(session)s, %(store)s, %(messages)s, %(now)s)"
_BEGIN = "SELECT begin_reply(%(session)s, %(store)s, %(process)s, %(message)s, %(now)s)"
_GROW = "SELECT grow_reply(%(reply)s, %(place)s, %(text)s, %(reasoning)s)"
_SEAL = """
    SELECT provider, model, created_at FROM seal_reply(%(reply)s, %(final)s, %(again)s, %(now)s)
"""
_DROP = "SELECT drop_reply(%(reply)s, %(again)s)"
_PIECES = "SELECT pieces_of(number) FROM message WHERE id = %(reply)s"
_BRANCH = f"""
    WITH tip AS MATERIALIZED (SELECT tip_of(%(session)s, %(head)s) AS number),
    start AS MATERIALIZED (SELECT start_of(number, %(most)s) AS depth FROM tip)
    SELECT {MESSAGE_COLUMNS}, message.depth, CASE WHEN message.depth = start.depth
        THEN (SELECT above.id FROM message AS above WHERE above.number = message.parent) END
    FROM tip CROSS JOIN start CROSS JOIN LATERAL line_of(tip.number) AS line
    CROSS JOIN LATERAL (
        SELECT one.* FROM message AS one WHERE one.run = line.run
            AND one.depth BETWEEN greatest(line.first, start.depth) AND line.last
        OFFSET 0  -- range by range, by the index
    ) AS message
    ORDER BY message.depth
"""  # noqa: S608 - our own names
_LINE = """
    SELECT message.number FROM line_of(tip_of(%(session)s, %(head)s)) AS line
    JOIN message ON message.run = line.run AND message.depth BETWEEN line.first AND line.last
    ORDER BY message.depth
"""
_SOME = f"SELECT {MESSAGE_COLUMNS} FROM message WHERE number = ANY (%(numbers)s) ORDER BY depth"  # noqa: S608
_COUNTS = """
    UPDATE message SET counts = given.counts
    FROM unnest(%(ids)s::text[], %(counts)s::text[]) AS given (id, counts) WHERE message.id = given.id
"""


@dataclass(slots=True)
class _Reply:
    """A reply that this store writes: what was stored of it, piece by piece."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Tree:
    """The messages of all sessions."""

    def __init__(self, database: Database, store: str, process: Mapping[str, Any]) -> None:
        self._database = database
        self._writer = {"store": store, "process": json.dumps(process)}
        self._replies: dict[str, _Reply] = {}

    @property
    def open_replies(self) -> list[str]:
        """The replies that this store still writes."""
        return list(self._replies)

    def branch(self, session_id: str, head: str | None) -> list[Message]:
        """Return the messages from the root to `head`, None for the session's."""
        return [read_message(row) for row in self._read(session_id, head, None)]

    def stretch(self, session_id: str, most: int | None, head: str | None) -> Stretch:
        """Return the newest of a branch: results are never without their call."""
        rows = self._read(session_id, head, most)
        if not rows:
            return Stretch([], "", {}, 0)
        *_, depth, above = rows[0]
        return Stretch([read_message(row) for row in rows], above or "", _counts(rows), depth - 1)

    def line(self, session_id: str, head: str) -> list[int]:
        """Return the row numbers of a branch from the root to `head`."""
        return [
            number
            for (number,) in self._database.run(_LINE, {"session": pack(session_id), "head": pack(head)})
        ]

    def some(self, numbers: Sequence[int]) -> Stretch:
        """Return the messages in some rows, oldest first."""
        rows = self._database.run(_SOME, {"numbers": list(numbers)})
        return Stretch([read_message(row) for row in rows], "", _counts(rows))

    def append(
        self, session_id: str, messages: Sequence[Message], now: float, touched: Iterable[FileTouch] = ()
    ) -> list[Message]:
        """Add messages below the head, one below the other, and move the head to the last."""
        stored = [
            replace(message, id=new_id(), created_at=real(message.created_at) or now) for message in messages
        ]
        rows = [message_columns(message) for message in stored]
        if rows:
            rows[0]["touched"] = [[pack(touch.path), touch.action, touch.sha256] for touch in touched]
            self._database.run(
                _APPEND,
                {"session": pack(session_id), "messages": json.dumps(rows), "now": now, **self._writer},
            )
        return stored

    def begin_reply(self, session_id: str, made_by: MadeBy, now: float) -> str:
        """Add an empty reply below the head, to be written by this store."""
        # what a reply is that nobody comes back to seal
        reply = Message("assistant", id=new_id(), made_by=made_by, ending=Ending.CANCELLED, created_at=now)
        values = {"session": pack(session_id), "message": json.dumps(message_columns(reply)), "now": now}
        self._database.run(_BEGIN, {**values, **self._writer})
        self._replies[reply.id] = _Reply()
        return reply.id

    def grow_reply(self, reply_id: str, text: str, reasoning: str) -> None:
        """Append streamed text to a reply that is still growing."""
        reply = self._replies.get(reply_id)
        if reply is None:
            self._grow(reply_id, 0, text, reasoning)
            return
        with reply.lock:
            self._grow(reply_id, len(reply.text), text, reasoning)
            reply.text.append(text)
            reply.reasoning.append(reasoning)

    def _grow(self, reply_id: str, place: int, text: str, reasoning: str) -> None:
        values = {"reply": pack(reply_id), "place": place, "text": pack(text), "reasoning": pack(reasoning)}
        self._database.run(_GROW, values)

    def seal_reply(self, reply_id: str, message: Message, now: float) -> Message:
        """End a growing reply as `message`, adding streamed text that is missing there."""
        final = with_streamed(message, *self._streamed(reply_id))
        values = {"reply": pack(reply_id), "final": json.dumps(content_columns(final)), "now": now}
        provider, model, created_at = self._database.row(_SEAL, values)
        self._replies.pop(reply_id, None)
        made_by = message.made_by or MadeBy(unpack(provider), unpack(model))
        return replace(final, id=reply_id, made_by=made_by, created_at=created_at)

    def drop_reply(self, reply_id: str, now: float) -> None:
        """Take back a reply that never got a byte; one that did, or was answered, is sealed as cancelled."""
        (is_gone,) = self._database.row(_DROP, {"reply": pack(reply_id)})
        if is_gone:
            self._replies.pop(reply_id, None)
        else:
            self.seal_reply(reply_id, Message("assistant", ending=Ending.CANCELLED), now)

    def save_counts(self, counts: Counts) -> None:
        """Replace the token counts of messages, by id."""
        ids = list(map(pack, counts))
        self._database.run(_COUNTS, {"ids": ids, "counts": [pack_counts(one) for one in counts.values()]})

    def _streamed(self, reply_id: str) -> tuple[str, str]:
        reply = self._replies.get(reply_id)
        if reply is not None:
            return "".join(reply.text), "".join(reply.reasoning)
        # another store's: whoever takes over from it reads what it wrote
        rows = self._database.run(_PIECES, {"reply": pack(reply_id)})
        text, reasoning = (rows[0][0] if rows else None) or ("", "")
        return unpack(text), unpack(reasoning)

    def _read(self, session_id: str, head: str | None, most: int | None) -> list[Row]:
        values = {"session": pack(session_id), "head": None if head is None else pack(head), "most": most}
        return self._database.run(_BRANCH, values)


def _counts(rows: Iterable[Row]) -> dict[str, Mapping[str, int]]:
    return {row[0]: found for row in rows if (found := unpack_counts(row[COUNTS]))}
