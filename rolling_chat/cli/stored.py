"""The store of saved sessions, for commands that open no chat."""

from __future__ import annotations

import atexit
from collections.abc import Iterable

from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Failure
from rolling_chat.cli.options import Options
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import SessionInfo, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.store_place import is_begun, store_place


def open_saved(options: Options, paths: Paths) -> SessionStore:
    """Open the store of saved sessions. Raises Failure with the store's own line, and SettingsError."""
    try:
        store = open_store(store_place(settings_of(options, paths), paths))
    except StoreError as error:
        raise Failure(str(error)) from error
    if store.is_remote:
        atexit.register(store.close)  # its connections have threads that would not end by themselves
    return store


def has_saved(options: Options, paths: Paths) -> bool:
    """Return whether there may be saved sessions. Raises SettingsError."""
    return is_begun(store_place(settings_of(options, paths), paths))


def count_local(options: Options, paths: Paths, there: Iterable[SessionInfo]) -> int:
    """Return the number of sessions on this machine that the store of the settings lacks, whole or in part.

    `there` is what that store has; 0 if the settings name none.
    """
    if not settings_of(options, paths).sessions.store or not is_begun(paths.database):
        return 0
    known = {info.id: info.updated_at for info in there}
    try:
        store = open_store(paths.database)
    except StoreError as error:
        raise Failure(str(error)) from error
    try:
        return sum(known.get(info.id, -1.0) < info.updated_at for info in store.sessions())
    finally:
        store.close()
