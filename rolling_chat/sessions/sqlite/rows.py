"""Messages as rows and back, without loss whatever the text holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, cast

from rolling_chat.messages import Content, Ending, Json, JsonObject, MadeBy, Message, Role, ToolCall
from rolling_chat.sessions.columns import Columns
from rolling_chat.sessions.ids import is_id, packed, unpacked
from rolling_chat.sessions.records import StoreError
from rolling_chat.text import without_controls

MESSAGE_COLUMNS = (
    "number", "role", "content", "parts", "tool_calls", "tool_call_id", "name",
    "extras", "provider", "model", "ending", "created_at", "id", "counts",
)  # fmt: skip

_ENDINGS = {ending.value: ending for ending in Ending}


def message_number(connection: sqlite3.Connection, id: str) -> int:
    """Return the row number of a message. Raises StoreError where there is none."""
    if is_id(id):
        row = connection.execute("SELECT number FROM message WHERE id = ?", (packed(id),)).fetchone()
        if row is not None:
            return int(row[0])
    raise StoreError(f"there is no message {id[:40]!r}")


def message_id(connection: sqlite3.Connection, number: int | None) -> str:
    """Return the id of the message in row `number`; empty for None, and for a row that is gone."""
    row = connection.execute(
        "SELECT id FROM message INDEXED BY message_ids WHERE number = ?", (number,)
    ).fetchone()
    return "" if row is None else unpacked(row[0])


def pack(text: str) -> str | bytes:
    """Convert `text` to what SQLite can hold: bytes if it has a lone surrogate (not UTF-8) or a NUL.

    SQL's own functions take a NUL for the end of a text.
    """
    if "\x00" in text:
        return text.encode("utf-8", "surrogatepass")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def unpack(value: str | bytes) -> str:
    """Return the text that `pack` converted."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def pack_json(value: Json) -> str:
    """Convert `value` to JSON text, which SQLite can hold whatever is in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def unpack_json(value: str | bytes) -> Json:
    """Return the value that `pack_json` was given; tuples have become lists."""
    return json.loads(unpack(value))


COLUMNS = Columns(pack, pack_json)


def content_columns(message: Message) -> dict[str, Any]:
    """Return the columns that change when a growing reply is sealed."""
    columns = COLUMNS.content(message)
    is_plain = isinstance(columns["content"], str)
    return columns | {
        "plain": None if is_plain else without_controls(message.text),
        "counts": None,  # what was counted of a reply that still grew would be wrong of it
    }


def message_columns(message: Message) -> dict[str, Any]:
    """Return a message's database columns, except those of its position in the tree."""
    return content_columns(message) | COLUMNS.origin(message)


def read_message(row: sqlite3.Row) -> Message:
    """Build a message from a database row of exactly MESSAGE_COLUMNS."""
    # unpacked by index: by name each column is searched for, and a session has thousands of rows
    _, role, text, parts, calls, call_id, name, extras, provider, model, ending, created, key, _ = row
    content: Content = unpack(text) if parts is None else tuple(unpack_json(parts))
    return Message(
        role=cast(Role, intern(role)),  # what many messages have is held once
        content=content,
        tool_calls=() if calls is None else tuple(ToolCall(*call) for call in unpack_json(calls)),
        tool_call_id=_optional(call_id),
        name=None if name is None else intern(unpack(name)),
        id=unpacked(key),
        extras=None if extras is None else cast(JsonObject, unpack_json(extras)),
        made_by=None if provider is None else _made_by(provider, model),
        ending=_ENDINGS[ending],
        created_at=created,
    )


def insert(connection: sqlite3.Connection, table: str, columns: Mapping[str, Any]) -> int:
    """Add a row, return its number. `table` and the columns' names are ours, never data."""
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own names
    return cast(int, connection.execute(statement, tuple(columns.values())).lastrowid)


def update(connection: sqlite3.Connection, table: str, number: int, columns: Mapping[str, Any]) -> bool:
    """Change the row `number`, return whether there is one. Names as for `insert`."""
    key = "number"
    settings = ", ".join(f"{column} = ?" for column in columns)
    statement = f"UPDATE {table} SET {settings} WHERE {key} = ?"  # noqa: S608 - our own names
    return connection.execute(statement, (*columns.values(), number)).rowcount > 0


@lru_cache(maxsize=256)
def _made_by(provider: str | bytes, model: str | bytes) -> MadeBy:
    return MadeBy(unpack(provider), unpack(model))


def _optional(value: str | bytes | None) -> str | None:
    return None if value is None else unpack(value)
