"""The store of saved sessions, for commands that open no chat."""

from __future__ import annotations

from rolling_chat.cli.exits import Failure
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths


def open_store(paths: Paths) -> SessionStore:
    """Open the store of saved sessions. Raises Failure with the store's own line."""
    try:
        return SessionStore.open(paths.database)
    except StoreError as error:
        raise Failure(str(error)) from error
