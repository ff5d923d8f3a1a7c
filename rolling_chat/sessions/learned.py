"""What refusals and replies taught about models, kept for the next process.

Every function works inside the caller's transaction. A model is known by its name, which holds the
provider's, and the address it was reached at (empty: the provider's own).
"""

from __future__ import annotations

import sqlite3

from rolling_chat.messages import Json, JsonObject
from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.rows import pack, pack_json, unpack_json, whole

LAPSES_AFTER = 30 * 86_400.0
"""Seconds that a learned limit stands: servers are set up anew, and models get larger windows."""

_KEEP = """
    INSERT INTO learned (model, address, limit_tokens, learned_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (model, address) DO UPDATE SET
        limit_tokens = excluded.limit_tokens, learned_at = excluded.learned_at
"""
_KEEP_MEASURED = """
    INSERT INTO measured (model, address, value) VALUES (?, ?, ?)
    ON CONFLICT (model, address) DO UPDATE SET value = excluded.value
"""


def learned(connection: sqlite3.Connection, model: str, address: str, now: float) -> Learned:
    """Return the window learned from refusals of a model at an address; empty if it has lapsed."""
    row = connection.execute(
        "SELECT limit_tokens, learned_at FROM learned WHERE model = ? AND address = ? AND learned_at > ?",
        (pack(model), pack(address), now - LAPSES_AFTER),
    ).fetchone()
    return Learned() if row is None else Learned(row["limit_tokens"], row["learned_at"])


def keep(connection: sqlite3.Connection, model: str, address: str, what: Learned, now: float) -> None:
    """Keep what was learned, in place of what was known; a limit of 0 forgets it."""
    connection.execute(_KEEP, (pack(model), pack(address), whole(what.limit), now))


def measured(connection: sqlite3.Connection, model: str, address: str) -> Json:
    """Return the stored measurements of how a model counts tokens; None if there are none."""
    row = connection.execute(
        "SELECT value FROM measured WHERE model = ? AND address = ?", (pack(model), pack(address))
    ).fetchone()
    return None if row is None else unpack_json(row["value"])


def keep_measured(connection: sqlite3.Connection, model: str, address: str, value: JsonObject) -> None:
    """Keep what was measured, in place of what was known."""
    connection.execute(_KEEP_MEASURED, (pack(model), pack(address), pack_json(dict(value))))
