"""Who has a session open, so that two terminals do not answer each other by accident."""

from __future__ import annotations

import dataclasses
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rolling_chat.process_identity import Process, this_process
from rolling_chat.sessions.records import Holder
from rolling_chat.sessions.sqlite.rows import insert

# seconds after which a session that another machine (or container) holds, and has not written
# to, counts as left behind: whether a process there still runs cannot be asked
_FOREIGN_PATIENCE = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of claims on sessions: one open store of one process."""

    process: Process
    store: str

    @classmethod
    def new(cls) -> Owner:
        """Describe this process as the owner of the store that it is about to open."""
        return cls(this_process(), secrets.token_hex(8))

    @classmethod
    def of(cls, row: sqlite3.Row) -> Owner:
        """Return the owner stored in a database row."""
        return cls(Process(row["pid"], row["host"], row["machine"], row["started"]), row["store"])

    def columns(self) -> Mapping[str, Any]:
        """Return the owner as columns."""
        return {**dataclasses.asdict(self.process), "store": self.store}


def claim(connection: sqlite3.Connection, session: int, owner: Owner, now: float) -> bool:
    """Take the session for `owner` and return whether it was not already so.

    To be called when `holder` has said that nobody else has it.
    """
    if _claim_of(connection, session, owner) is not None:
        return False
    connection.execute("DELETE FROM claim WHERE session = ?", (session,))
    insert(connection, "claim", {"session": session, "since": now, **owner.columns()})
    return True


def holder(connection: sqlite3.Connection, session: int, owner: Owner, now: float) -> Holder | None:
    """Return the process other than `owner` that has the session open, or None."""
    row = connection.execute(
        "SELECT claim.*, max(claim.since, session.updated_at) AS seen"
        " FROM claim JOIN session ON session.number = claim.session WHERE session = ?",
        (session,),
    ).fetchone()
    if row is None or row["store"] is None or row["store"] == owner.store:
        return None
    process = Owner.of(row).process
    if is_left(process, row["seen"], now):
        return None
    return Holder(process.pid, process.host, row["since"])


def is_left(process: Process, seen: float, now: float) -> bool:
    """Return whether `process` is gone for good; `seen` is when it last wrote, in seconds since the epoch."""
    return process.is_gone() or (not process.can_be_asked() and now - seen > _FOREIGN_PATIENCE)


def release(connection: sqlite3.Connection, session: int, owner: Owner) -> None:
    """Release a session that `owner` has claimed."""
    connection.execute("DELETE FROM claim WHERE session = ? AND store = ?", (session, owner.store))


def release_all(connection: sqlite3.Connection, owner: Owner) -> None:
    """Release every session that `owner` has claimed."""
    connection.execute("DELETE FROM claim WHERE store = ?", (owner.store,))


def _claim_of(connection: sqlite3.Connection, session: int, owner: Owner) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        "SELECT * FROM claim WHERE session = ? AND store = ?", (session, owner.store)
    ).fetchone()
    return found
