"""A session as JSON in OpenAI's message format, which can be imported again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rolling_chat.messages import Json, Message
from rolling_chat.sessions.records import SessionInfo, StoredSummary


def to_json(info: SessionInfo, messages: Sequence[Message], summary: StoredSummary | None = None) -> str:
    """Return one object: what is known of the session, its messages and its summary, null where it has none.

    `through` is the index of the last message that the summary covers, counted from 1. Times are seconds
    since the epoch.
    """
    return _dumps(
        {
            "id": info.id,
            "title": info.title,
            "folder": info.folder,
            "model": info.model,
            "created_at": info.created_at,
            "updated_at": info.updated_at,
            "summary": _summary(summary),
            "messages": [message.to_dict() for message in messages],
        },
        indent=2,
    )


def to_jsonl(messages: Sequence[Message]) -> str:
    """Return a message a line."""
    return "".join(_dumps(message.to_dict()) for message in messages)


def _summary(summary: StoredSummary | None) -> Json:
    if summary is None or not summary.text:
        return None
    return {
        "text": summary.text,
        "through": summary.place,
        "skipped": [list(part) for part in summary.skipped],
        "made_by": summary.made_by,
        "created_at": summary.created_at,
    }


def _dumps(value: Json, indent: int | None = None) -> str:
    # ASCII keeps control characters, and halves of surrogate pairs, out of files and terminals
    return json.dumps(value, ensure_ascii=True, indent=indent, default=str) + "\n"
