"""What refusals and replies taught about models, kept for the next process.

A model is known by its name, which holds the provider's, and the address it was reached at (empty: the
provider's own).
"""

from __future__ import annotations

from collections.abc import Callable

from rolling_chat.messages import Json, JsonObject
from rolling_chat.sessions.database import Database
from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.rows import pack, pack_json, unpack_json, whole

LAPSES_AFTER = 30 * 86_400.0
"""Seconds that a learned limit is trusted: servers are set up anew, and models get larger windows."""

_LEARNED = """
    SELECT limit_tokens, learned_at FROM learned WHERE model = ? AND address = ? AND learned_at > ?
"""
_MEASURED = "SELECT value FROM measured WHERE model = ? AND address = ?"
_KEEP = """
    INSERT INTO learned (model, address, limit_tokens, learned_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (model, address) DO UPDATE SET
        limit_tokens = excluded.limit_tokens, learned_at = excluded.learned_at
"""
_KEEP_MEASURED = """
    INSERT INTO measured (model, address, value) VALUES (?, ?, ?)
    ON CONFLICT (model, address) DO UPDATE SET value = excluded.value
"""


class LearnedModels:
    """A store of what refusals and replies revealed about models: their limits, how they count tokens."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def learned(self, model: str, address: str) -> Learned:
        """Return the window learned from refusals of a model at an address; empty if it has lapsed."""
        since = self._clock() - LAPSES_AFTER
        with self._database.read() as connection:
            row = connection.execute(_LEARNED, (pack(model), pack(address), since)).fetchone()
        return Learned() if row is None else Learned(row["limit_tokens"], row["learned_at"])

    def keep_learned(self, model: str, address: str, what: Learned) -> None:
        """Store a model's limit in tokens; 0 deletes it."""
        with self._database.write() as connection:
            connection.execute(_KEEP, (pack(model), pack(address), whole(what.limit), self._clock()))

    def measured(self, model: str, address: str) -> Json:
        """Return the stored measurements of how a model counts tokens; None if there are none."""
        with self._database.read() as connection:
            row = connection.execute(_MEASURED, (pack(model), pack(address))).fetchone()
            return None if row is None else unpack_json(row["value"])

    def keep_measured(self, model: str, address: str, value: JsonObject) -> None:
        """Store how a model counts tokens, as measured from its replies."""
        with self._database.write() as connection:
            connection.execute(_KEEP_MEASURED, (pack(model), pack(address), pack_json(dict(value))))
