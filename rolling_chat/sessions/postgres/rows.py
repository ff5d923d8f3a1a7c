"""Messages as rows of PostgreSQL and back, without loss whatever the text holds."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from sys import intern
from typing import Any, cast

from rolling_chat.messages import Content, Ending, Json, JsonObject, MadeBy, Message, Role, ToolCall
from rolling_chat.pictures import data_uri
from rolling_chat.sessions.columns import Columns
from rolling_chat.sessions.pictures_apart import put_away, put_back
from rolling_chat.sessions.postgres.index_words import index_words
from rolling_chat.sessions.titles import says_something, title_of
from rolling_chat.sessions.values import with_streamed

MESSAGE_COLUMNS = """
    message.id, message.role, message.content, message.parts, message.tool_calls, message.tool_call_id,
    message.name, message.extras, message.provider, message.model, message.ending, message.created_at,
    message.counts, CASE WHEN message.parts IS NOT NULL THEN pictures_of(message.number) END,
    CASE WHEN message.ending = 'cancelled' THEN pieces_of(message.number) END
"""
"""What `read_message` takes, in this order."""
COUNTS = 12
"""The index of the token counts in a row of them."""

_ENDINGS = {ending.value: ending for ending in Ending}
# what no text of PostgreSQL holds, and the sign that stands before its number
_UNKEPT = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def pack(text: str) -> str:
    """Convert `text` to what PostgreSQL can hold: neither NUL nor halves of characters."""
    return _UNKEPT.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def unpack(value: str) -> str:
    """Return the text that `pack` converted."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value) if "\x1a" in value else value


def pack_json(value: Json) -> str:
    """Convert `value` to JSON text."""
    return pack(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def unpack_json(value: str) -> Json:
    """Return the value that `pack_json` was given; tuples have become lists."""
    return json.loads(unpack(value))


COLUMNS = Columns(pack, pack_json)


def content_columns(message: Message) -> dict[str, Any]:
    """Return the columns that change when a growing reply is sealed."""
    return COLUMNS.content(message) | {"words": index_words(message.text)}


def message_columns(message: Message) -> dict[str, Any]:
    """Return what a message is added with: its columns, its pictures and the title that it may give."""
    bare, pictures = put_away(message)
    title = title_of(message.text) if message.role == "user" else ""
    return (
        content_columns(bare)
        | COLUMNS.origin(message)
        | {
            "id": message.id,
            "title": pack(title),
            "title_says": says_something(title),
            "pictures": [
                [sha256, pack(media_type), base64.b64encode(data).decode()]
                for sha256, (media_type, data) in pictures.items()
            ],
        }
    )


def read_message(row: tuple[Any, ...]) -> Message:
    """Build a message from a row that begins with MESSAGE_COLUMNS."""
    (
        message_id, role, text, parts, calls, call_id, name, extras, provider, model, ending, created_at, _,
        pictures, pieces,
    ) = row[:15]  # fmt: skip
    content: Content = unpack(text) if parts is None else tuple(unpack_json(parts))
    message = Message(
        role=cast(Role, intern(role)),  # what many messages have is held once
        content=content,
        tool_calls=() if calls is None else tuple(ToolCall(*call) for call in unpack_json(calls)),
        tool_call_id=None if call_id is None else unpack(call_id),
        name=None if name is None else intern(unpack(name)),
        id=message_id,
        extras=None if extras is None else cast(JsonObject, unpack_json(extras)),
        made_by=None if provider is None else _made_by(provider, model),
        ending=_ENDINGS[ending],
        created_at=created_at,
    )
    if parts is not None:
        message = put_back(message, _addresses(pictures))
    return message if pieces is None else with_streamed(message, *map(unpack, pieces))


def _addresses(pictures: list[list[str]] | None) -> dict[str, str]:
    return {
        sha256: data_uri(unpack(media_type), base64.b64decode(data))
        for sha256, media_type, data in pictures or ()
    }


@lru_cache(maxsize=256)
def _made_by(provider: str, model: str) -> MadeBy:
    return MadeBy(unpack(provider), unpack(model))
