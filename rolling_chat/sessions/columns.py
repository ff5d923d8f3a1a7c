"""What is stored of messages, requests, summaries and changed files: the columns that every store has."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from rolling_chat.messages import Json, Message, Usage
from rolling_chat.sessions.records import KeptChange, KeptVersion, RequestRecord, StoredSummary
from rolling_chat.sessions.values import real, whole

_BEFORE_LINK, _AFTER_LINK = 1, 2


@dataclass(frozen=True, slots=True)
class Columns:
    """Builds columns by name; `text` and `json` make what a database can hold."""

    text: Callable[[str], str | bytes]
    json: Callable[[Json], str | bytes]

    def content(self, message: Message) -> dict[str, Any]:
        """Return the columns that change when a growing reply is sealed."""
        calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
        return {
            "content": self.text(message.text),
            "parts": None if isinstance(message.content, str) else self.json([*map(dict, message.content)]),
            "tool_calls": self.json(calls) if calls else None,
            "extras": self.json(message.extras) if message.extras else None,
            "provider": self.text(message.made_by.provider) if message.made_by else None,
            "model": self.text(message.made_by.model) if message.made_by else None,
            "ending": message.ending.value,
        }

    def origin(self, message: Message) -> dict[str, Any]:
        """Return the columns of a message that never change, but its id and its position in the tree."""
        return {
            "role": message.role,
            "tool_call_id": self._optional(message.tool_call_id),
            "name": self._optional(message.name),
            "created_at": real(message.created_at),
        }

    def request(self, record: RequestRecord) -> dict[str, Any]:
        """Return the columns of a request, but its id, its session and its head."""
        return {
            "short": self.text(record.short),
            "model": self.text(record.model),
            "plan": self.json(record.plan),
            "settings_digest": record.settings_digest,
            "pipeline_version": whole(record.pipeline_version),
            "wire_hash": record.wire_hash,
            "estimated": whole(record.estimated),
            "bound": whole(record.bound),
            "created_at": real(record.created_at),
            "totals": self.json(dict(record.totals)),
            "purpose": record.purpose,
        } | self.outcome(
            record.usage, record.seconds, record.error, (record.cache_miss, record.missed_tokens)
        )

    def outcome(self, usage: Usage, seconds: float, error: str, miss: tuple[str, int]) -> dict[str, Any]:
        """Return the columns of what came back of a request."""
        cost = usage.cost
        return {
            "input_tokens": whole(usage.input_tokens),
            "output_tokens": whole(usage.output_tokens),
            "cached_read_tokens": whole(usage.cached_read_tokens),
            "cached_write_tokens": whole(usage.cached_write_tokens),
            "reasoning_tokens": whole(usage.reasoning_tokens),
            "cost": cost if cost is not None and math.isfinite(cost) else None,
            "seconds": real(seconds),
            "error": self.text(error),
            "cache_miss": self.text(miss[0]),
            "missed_tokens": whole(miss[1]),
        }

    def summary(self, summary: StoredSummary) -> dict[str, Any]:
        """Return the columns of a summary, but its session, its generation and its last message."""
        return {
            "made_from": whole(summary.made_from),
            "text": self.text(summary.text),
            "digest": summary.digest,
            "made_by": self.text(summary.made_by),
            "tokens_before": whole(summary.tokens_before),
            "tokens_after": whole(summary.tokens_after),
            "created_at": real(summary.created_at),
            "skipped": json.dumps(summary.skipped) if summary.skipped else "",
        }

    def change(self, change: KeptChange) -> dict[str, Any]:
        """Return the columns of a change of a file, but its message."""
        before, after = change.before, change.after
        links = _BEFORE_LINK * (before is not None and before.is_link)
        links += _AFTER_LINK * (after is not None and after.is_link)
        return {
            "path": self.text(change.path),
            "before": before.sha256 if before is not None else None,
            "before_mode": before.mode if before is not None else None,
            "after": after.sha256 if after is not None else None,
            "after_mode": after.mode if after is not None else None,
            "links": links,
            "folders": self.json(list(change.folders)),
        }

    def _optional(self, text: str | None) -> str | bytes | None:
        return None if text is None else self.text(text)


def versions(
    before: str | None, before_mode: int | None, after: str | None, after_mode: int | None, links: int
) -> tuple[KeptVersion | None, KeptVersion | None]:
    """Return what a file held before and after a change, by the columns of the change."""
    return (
        None if before is None else KeptVersion(before, before_mode, bool(links & _BEFORE_LINK)),
        None if after is None else KeptVersion(after, after_mode, bool(links & _AFTER_LINK)),
    )


def pack_counts(counts: Mapping[str, int]) -> str | None:
    """Convert token counts by name to JSON text; None for none."""
    return json.dumps(dict(counts)) if counts else None


def unpack_counts(text: str | None) -> dict[str, int]:
    """Return the token counts that `pack_counts` was given."""
    return {} if text is None else {intern(name): count for name, count in json.loads(text).items()}


def unpack_skipped(text: str | None) -> tuple[tuple[int, int], ...]:
    """Return the ranges that a summary does not stand for."""
    return tuple((start, stop) for start, stop in json.loads(text or "[]"))
