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


PLACES: Mapping[str, Callable[[Path], Place]] = {"sqlite": SqlitePlace}
"""Every place, by name; what makes one is given a folder of the test's own."""
