"""The sign of life of an open store: as long as it is given, nobody else takes over its sessions."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from typing import Any

from rolling_chat.sessions.postgres.database import Database
from rolling_chat.sessions.records import StoreError

_log = logging.getLogger("rolling_chat.sessions")

INTERVAL = 15.0
"""Seconds between two signs; the database takes a store for dead after 60 without one, by its own clock."""

_SOON = 2.0  # seconds to the next try where one failed


class Heartbeat:
    """A thread that tells the database that this store lives, from the first session that it has open."""

    def __init__(self, database: Database, store: str, process: Mapping[str, Any]) -> None:
        self._database = database
        self._values = {"store": store, "process": json.dumps(process)}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, if that was not done before."""
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=INTERVAL)

    def _run(self) -> None:
        wait = INTERVAL
        while not self._ended.wait(wait):
            try:
                self._database.run("SELECT beat(%(store)s, %(process)s)", self._values, patience=_SOON)
                wait = INTERVAL
            except StoreError as error:
                _log.warning("no sign of life could be given: %s", error)
                wait = _SOON
