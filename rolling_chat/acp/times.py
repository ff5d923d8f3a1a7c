"""Times in the format of the protocol."""

from __future__ import annotations

from datetime import UTC, datetime


def as_iso(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
