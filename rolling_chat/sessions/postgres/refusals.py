"""What the functions in PostgreSQL refuse, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg

from rolling_chat.process_identity import Process
from rolling_chat.sessions.records import Holder, SessionNotFound, StoreError
from rolling_chat.text import one_line


@dataclass(frozen=True, slots=True)
class Other:
    """The open store that has a session, and its process."""

    store: str
    process: Process
    since: float
    session: str
    short: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Other:
        """Read what the database says of it."""
        process = Process(row["pid"], row["host"], row.get("machine", ""), row.get("started", ""))
        return cls(row.get("store", ""), process, row["since"], row.get("session", ""), row.get("short", ""))

    @property
    def holder(self) -> Holder:
        """As the program knows it."""
        return Holder(self.process.pid, self.process.host, self.since)


class HeldElsewhere(StoreError):  # noqa: N818 - reads as what it is at the place that catches it
    """A session that another store has open."""

    def __init__(self, other: Other) -> None:
        super().__init__(
            f"session {other.short} is open in another terminal "
            f"(process {other.process.pid} on {other.process.host}); close it first"
        )
        self.other = other


_REFUSALS = {
    "RC002": "there is no message {}",
    "RC003": "the reply {} is closed; nothing more can be written to it",
    "RC005": "message {} is not of this session",
    "RC006": "session {} is shared with you for reading only; /fork makes a copy of your own",
    "RC007": "session {} is somebody else's in this store; export it and import the file for one of your own",
    "RC008": "session {} belongs to somebody else, who alone may delete it",
    "RC009": "session {} belongs to somebody else, who alone may share it",
    "RC010": "the database has no other login {}; name somebody who uses this store",
}


def refusal(error: psycopg.Error) -> StoreError | None:
    """Return what a function refused as an error of the store; None where it is another fault."""
    detail = error.diag.message_detail or ""
    shown = repr(one_line(detail, 40))
    match error.sqlstate:
        case "RC001":
            return SessionNotFound(f"there is no session {shown}; it may have been deleted")
        case "RC004":
            return HeldElsewhere(Other.of(json.loads(detail)))
        case str(state) if state in _REFUSALS:
            return StoreError(_REFUSALS[state].format(shown))
    return None
