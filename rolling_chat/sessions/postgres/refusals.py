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


def refusal(error: psycopg.Error) -> StoreError | None:
    """Return what a function refused as an error of the store; None where it is another fault."""
    detail = error.diag.message_detail or ""
    shown = repr(one_line(detail, 40))
    match error.sqlstate:
        case "RC001":
            return SessionNotFound(f"there is no session {shown}; it may have been deleted")
        case "RC002":
            return StoreError(f"there is no message {shown}")
        case "RC003":
            return StoreError(f"the reply {shown} is closed; nothing more can be written to it")
        case "RC004":
            return HeldElsewhere(Other.of(json.loads(detail)))
        case "RC005":
            return StoreError(f"message {shown} is not of this session")
        case "RC006":
            return StoreError(
                f"session {shown} is shared with you for reading only; export it to go on in a copy"
            )
        case "RC007":
            return StoreError(
                f"session {shown} belongs to somebody else; export and import it for a copy of your own"
            )
        case "RC008":
            return StoreError(f"session {shown} belongs to somebody else, who alone may delete it")
    return None
