"""The one way to a store: by where it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.sqlite.store import SqliteStore
from rolling_chat.sessions.store import SessionStore


def open_store(where: str | Path | None, *, clock: Callable[[], float] = time.time) -> SessionStore:
    """Open the store at a path or an address of PostgreSQL, or one in memory for None; made if it is missing.

    What is no session store, is damaged, or was written by a newer version of the program is left as it
    is: StoreError.
    """
    if isinstance(where, str) and is_address(where):
        return _postgres(where, clock)
    return SqliteStore.open(None if where is None else Path(where), clock=clock)


def is_address(where: str) -> bool:
    """Return whether a store is in PostgreSQL, and not in a file."""
    return where.startswith(("postgresql://", "postgres://"))


def _postgres(address: str, clock: Callable[[], float]) -> SessionStore:
    try:
        from rolling_chat.sessions.postgres.store import PostgresStore  # noqa: PLC0415 - loads in 80 ms
    except ImportError as error:
        raise StoreError(
            f"sessions in PostgreSQL need the extra: pip install 'rolling-chat[postgres]' ({error})"
        ) from error
    return PostgresStore.open(address, clock=clock)
