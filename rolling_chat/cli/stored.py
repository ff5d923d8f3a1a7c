"""The store of saved sessions, for commands that open no chat."""

from __future__ import annotations

from rolling_chat.cli.exits import Failure
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths


def open_saved(paths: Paths) -> SessionStore:
    """Open the store of saved sessions. Raises Failure with the store's own line."""
    try:
        return open_store(paths.database)
    except StoreError as error:
        raise Failure(str(error)) from error
