"""What refusals and replies taught about models, in PostgreSQL: each user's own."""

from __future__ import annotations

from collections.abc import Callable

from rolling_chat.messages import Json, JsonObject
from rolling_chat.sessions.learned import LAPSES_AFTER, LearnedModels
from rolling_chat.sessions.postgres.database import Database
from rolling_chat.sessions.postgres.rows import pack, pack_json, unpack_json
from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.values import whole

_OWN = "owner = session_user AND model = %(model)s AND address = %(address)s"
_LEARNED = f"SELECT limit_tokens, learned_at FROM learned WHERE {_OWN} AND learned_at > %(since)s"  # noqa: S608
_MEASURED = f"SELECT value FROM measured WHERE {_OWN}"  # noqa: S608
_KEEP = """
    INSERT INTO learned (model, address, limit_tokens, learned_at)
    VALUES (%(model)s, %(address)s, %(limit)s, %(now)s)
    ON CONFLICT (owner, model, address) DO UPDATE SET
        limit_tokens = excluded.limit_tokens, learned_at = excluded.learned_at
"""
_KEEP_MEASURED = """
    INSERT INTO measured (model, address, value) VALUES (%(model)s, %(address)s, %(value)s)
    ON CONFLICT (owner, model, address) DO UPDATE SET value = excluded.value
"""


class PostgresLearnedModels(LearnedModels):
    """What was learned about models, in PostgreSQL."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def learned(self, model: str, address: str) -> Learned:
        since = self._clock() - LAPSES_AFTER
        rows = self._database.run(_LEARNED, {**_key(model, address), "since": since})
        return Learned(*rows[0]) if rows else Learned()

    def keep_learned(self, model: str, address: str, what: Learned) -> None:
        values = {"limit": whole(what.limit), "now": self._clock()}
        self._database.run(_KEEP, {**_key(model, address), **values})

    def measured(self, model: str, address: str) -> Json:
        rows = self._database.run(_MEASURED, _key(model, address))
        return unpack_json(rows[0][0]) if rows else None

    def keep_measured(self, model: str, address: str, value: JsonObject) -> None:
        self._database.run(_KEEP_MEASURED, {**_key(model, address), "value": pack_json(dict(value))})


def _key(model: str, address: str) -> dict[str, str]:
    return {"model": pack(model), "address": pack(address)}
