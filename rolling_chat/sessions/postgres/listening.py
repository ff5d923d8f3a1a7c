"""News of sessions that another machine writes to: told by the database, not asked for again and again."""

from __future__ import annotations

import hashlib
import logging
import threading
import time

import psycopg
from psycopg import sql

from rolling_chat.sessions.postgres.database import Database

_log = logging.getLogger("rolling_chat.sessions")

_AT_LEAST_EVERY = 20.0  # seconds: a writer that was killed, or a lost connection, tells nothing
_ROUND = 0.5  # seconds in which the thread looks whether it is to follow another session, or to end
_AGAIN = 2.0


class Listening:
    """A thread with a connection of its own, from the first session that is followed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: dict[str, float] = {}  # when each session followed was last looked at; 0: there is news

    def follow(self, session_id: str) -> None:
        """Begin to listen for a session, if that was not done before."""
        with self._lock:
            self._told.setdefault(session_id, 0.0)
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="listening", daemon=True)
                self._thread.start()

    def leave(self, session_id: str) -> None:
        """Listen no longer for a session."""
        with self._lock:
            self._told.pop(session_id, None)

    def has_news(self, session_id: str) -> bool:
        """Return whether something was told of a session, or it was not looked at for long."""
        now = time.monotonic()
        with self._lock:
            if now - self._told.get(session_id, 0.0) < _AT_LEAST_EVERY:
                return False
            if session_id in self._told:
                self._told[session_id] = now
            return True

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=_AGAIN)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with self._database.own_connection() as connection:
                    self._listen(connection)
            except psycopg.Error as error:
                _log.warning("no news of sessions: %s", self._database.redacted(str(error)))
                self._ended.wait(_AGAIN)

    def _listen(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        heard: dict[str, str] = {}  # sessions by their channel
        while not self._ended.is_set():
            with self._lock:
                wanted = {_channel(session): session for session in self._told}
            for channel in wanted.keys() - heard.keys():
                connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                self._tell(wanted[channel])  # what was written before
            for channel in heard.keys() - wanted.keys():
                connection.execute(sql.SQL("UNLISTEN {}").format(sql.Identifier(channel)))
            heard = wanted
            for notice in connection.notifies(timeout=_ROUND, stop_after=1):
                self._tell(heard.get(notice.channel, ""))

    def _tell(self, session_id: str) -> None:
        with self._lock:
            if session_id in self._told:
                self._told[session_id] = 0.0


def _channel(session_id: str) -> str:
    """Return the channel of a session: whoever does not know its id cannot listen."""
    return f"rolling_chat_{hashlib.md5(session_id.encode(), usedforsecurity=False).hexdigest()}"
