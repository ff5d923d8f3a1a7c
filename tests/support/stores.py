"""The places where a store can be kept, each of which must pass `tests/sessions/conformance`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.sqlite.migrations import VERSION
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import new_database, shared_server
from tests.support.sessions import faults_of


class Place(Protocol):
    """A place of its own for one store, empty at first, which may be opened many times at once."""

    @property
    def address(self) -> str:
        """What `open_store` takes, in this process or another."""

    def open(self, *, clock: Callable[[], float] = time.time) -> SessionStore:
        """Open the store that is kept here; who opens it closes it."""

    def make_newer(self) -> None:
        """Mark what is kept here as written by a newer version of the program."""

    def contents(self) -> object:
        """Everything that is kept here, to be compared."""

    def faults(self) -> list[str]:
        """What is wrong with what is kept here, by the database's own account."""


class SqlitePlace:
    """A file in a folder that is not there yet."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "data" / "sessions.db"
        self.address = str(self._path)

    def open(self, *, clock: Callable[[], float] = time.time) -> SessionStore:
        return open_store(self.address, clock=clock)

    def make_newer(self) -> None:
        with closing(sqlite3.connect(self._path)) as connection:
            connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    def contents(self) -> object:
        return {path.name: path.read_bytes() for path in self._path.parent.iterdir()}

    def faults(self) -> list[str]:
        return faults_of(self._path)


class PostgresPlace:
    """A database with empty tables, in the server of this run."""

    def __init__(self, folder: Path) -> None:
        self._server = shared_server()
        self._database = new_database(self._server)
        self.address = self._server.url(self._database)

    def open(self, *, clock: Callable[[], float] = time.time) -> SessionStore:
        return open_store(self.address, clock=clock)

    def make_newer(self) -> None:
        self._server.sql("UPDATE rolling_chat.version SET number = number + 1", self._database)

    def contents(self) -> object:
        return self._server.dump(self._database)

    def faults(self) -> list[str]:
        return self._server.sql(_FAULTS, self._database).splitlines()


# what must hold of the tree, and is not checked by the tables themselves
_FAULTS = """
    SELECT 'not below its parent: ' || message.id FROM rolling_chat.message
    LEFT JOIN rolling_chat.message AS above ON above.number = message.parent
    WHERE message.depth <> coalesce(above.depth, 0) + 1
        OR message.turn <> coalesce(above.turn, 0) + (message.role = 'user')::integer
        OR (message.run <> message.number AND message.run IS DISTINCT FROM above.run)
    UNION ALL
    SELECT 'without its first message: ' || message.id FROM rolling_chat.message
    LEFT JOIN rolling_chat.message AS start ON start.number = message.run AND start.run = message.run
    WHERE start.number IS NULL
"""


PLACES: Mapping[str, Callable[[Path], Place]] = {"sqlite": SqlitePlace, "postgres": PostgresPlace}
"""Every place, by name; what makes one is given a folder of the test's own."""
