"""A session as JSON in OpenAI's message format, which can be imported again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rolling_chat.messages import Json, Message
from rolling_chat.sessions.records import SessionInfo


def to_json(info: SessionInfo, messages: Sequence[Message]) -> str:
    """One object: what is known of the session, and its messages. Times are seconds since the epoch."""
    return _dumps(
        {
            "id": info.id,
            "title": info.title,
            "folder": info.folder,
            "model": info.model,
            "created_at": info.created_at,
            "updated_at": info.updated_at,
            "messages": [message.to_dict() for message in messages],
        },
        indent=2,
    )


def to_jsonl(messages: Sequence[Message]) -> str:
    """A message a line."""
    return "".join(_dumps(message.to_dict()) for message in messages)


def _dumps(value: Json, indent: int | None = None) -> str:
    # ASCII keeps control characters, and halves of surrogate pairs, out of files and terminals
    return json.dumps(value, ensure_ascii=True, indent=indent, default=str) + "\n"
