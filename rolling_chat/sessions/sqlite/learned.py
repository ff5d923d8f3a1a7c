"""What was learned about models, as rows."""

from __future__ import annotations

from collections.abc import Callable

from rolling_chat.messages import Json, JsonObject
from rolling_chat.sessions.learned import LAPSES_AFTER, LearnedModels
from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.sqlite.database import Database
from rolling_chat.sessions.sqlite.rows import pack, pack_json, unpack_json
from rolling_chat.sessions.values import whole

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


class SqliteLearnedModels(LearnedModels):
    """The table of what was learned about models."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def learned(self, model: str, address: str) -> Learned:
        since = self._clock() - LAPSES_AFTER
        with self._database.read() as connection:
            row = connection.execute(_LEARNED, (pack(model), pack(address), since)).fetchone()
        return Learned() if row is None else Learned(row["limit_tokens"], row["learned_at"])

    def keep_learned(self, model: str, address: str, what: Learned) -> None:
        with self._database.write() as connection:
            connection.execute(_KEEP, (pack(model), pack(address), whole(what.limit), self._clock()))

    def measured(self, model: str, address: str) -> Json:
        with self._database.read() as connection:
            row = connection.execute(_MEASURED, (pack(model), pack(address))).fetchone()
            return None if row is None else unpack_json(row["value"])

    def keep_measured(self, model: str, address: str, value: JsonObject) -> None:
        with self._database.write() as connection:
            connection.execute(_KEEP_MEASURED, (pack(model), pack(address), pack_json(dict(value))))
