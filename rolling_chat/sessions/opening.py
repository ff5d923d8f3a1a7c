"""The one way to a store: by where it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rolling_chat.sessions.sqlite.store import SqliteStore
from rolling_chat.sessions.store import SessionStore


def open_store(where: str | Path | None, *, clock: Callable[[], float] = time.time) -> SessionStore:
    """Open the store at a path, or one in memory for None; it is made if it is missing.

    What is no session store, is damaged, or was written by a newer version of the program is left as it
    is: StoreError.
    """
    return SqliteStore.open(None if where is None else Path(where), clock=clock)
