"""What refusals taught about the windows of models, kept for the next process.

Every function works inside the caller's transaction. A model is known by its name, which holds the
provider's, and the address it was reached at (empty: the provider's own).
"""

from __future__ import annotations

import sqlite3

from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.rows import pack, real, whole

_KEEP = """
    INSERT INTO learned (model, address, limit_tokens, factor, learned_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (model, address) DO UPDATE SET
        limit_tokens = excluded.limit_tokens, factor = excluded.factor, learned_at = excluded.learned_at
"""


def learned(connection: sqlite3.Connection, model: str, address: str) -> Learned:
    """What is known of a model at an address."""
    row = connection.execute(
        "SELECT limit_tokens, factor FROM learned WHERE model = ? AND address = ?",
        (pack(model), pack(address)),
    ).fetchone()
    return Learned() if row is None else Learned(row["limit_tokens"], max(row["factor"], 1.0))


def keep(connection: sqlite3.Connection, model: str, address: str, what: Learned, now: float) -> None:
    """Keep what was learned, in place of what was known."""
    values = (pack(model), pack(address), whole(what.limit), real(what.factor), now)
    connection.execute(_KEEP, values)
