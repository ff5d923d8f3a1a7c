"""The SQLite file itself: opened without harm to what is there, written in short transactions."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rolling_chat.sessions.records import StoreDamaged, StoreError
from rolling_chat.sessions.sqlite import text_index
from rolling_chat.sessions.sqlite.migrations import APPLICATION_ID, MIGRATIONS, VERSION, add_functions
from rolling_chat.text import printable

_log = logging.getLogger("rolling_chat.sessions")

# the file's own header: https://sqlite.org/fileformat.html#the_database_header
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68
_HEADER_BYTES = 100

# seconds that a write waits for another process's; ours take milliseconds
_PATIENCE = 10.0

# when a commit waits for the disk: always, or only when the log is folded into the file
_SYNC_ALWAYS, _SYNC_SELDOM = "FULL", "NORMAL"

_STEPS_BETWEEN_LOOKS = 10_000  # of SQLite's machine: some 0.1 ms

_FAULTS = {
    "SQLITE_BUSY": "is busy: another process has been writing to it for long; try again",
    "SQLITE_LOCKED": "is busy: another process has been writing to it for long; try again",
    "SQLITE_READONLY": "cannot be written: the file or its folder is read-only",
    "SQLITE_FULL": "cannot be written: the disk is full; make room and try again",
    "SQLITE_IOERR_SHMSIZE": "cannot be opened: the disk is full; make room and try again",
    "SQLITE_IOERR": "cannot be read or written: the disk reports an error",
    "SQLITE_CORRUPT": "is damaged and was left as it is; move it away to start with a new one",
    "SQLITE_NOTADB": "is damaged and was left as it is; move it away to start with a new one",
    "SQLITE_CANTOPEN": "cannot be opened: look at the rights of the file and its folder",
    "SQLITE_PERM": "cannot be opened: look at the rights of the file and its folder",
    "SQLITE_AUTH": "cannot be opened: look at the rights of the file and its folder",
    "SQLITE_TOOBIG": "cannot hold a text so large",
}


class Database:
    """One connection, for any thread of this process; every fault comes out as a StoreError."""

    def __init__(self, connection: sqlite3.Connection, name: str, path: str | None = None) -> None:
        self._connection = connection
        self._name = name
        self._path = path
        self._lock = threading.RLock()
        self._open = True

    @classmethod
    def open(cls, path: Path | None) -> Database:
        """Open the database at `path`, or one in memory for None; made and migrated as needed.

        Raises StoreError, and leaves the file as it is, for what is no database of ours, is
        damaged, or was written by a newer version of the program.
        """
        if path is None:
            database = cls(_connect(":memory:"), "the session store")
        else:
            path = path.absolute()
            name = f"the session store {printable(str(path), 0)}"
            with _faults(name):
                _prepare(path, name)
                database = cls(_connect(str(path)), name, str(path))
        try:
            database._migrate()
            if path is not None:
                database._use_wal()
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the connection; closing twice is no fault."""
        with self._lock:
            self._open = False
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for reading: all reads inside see the same state."""
        # nothing to commit; and a damaged text index that was looked into refuses a COMMIT
        with self._transaction("BEGIN", end="ROLLBACK") as connection:
            yield connection

    @contextlib.contextmanager
    def read_aside(self, is_stopped: Callable[[], bool]) -> Iterator[sqlite3.Connection]:
        """Lend a connection of its own for reading that may take long; once `is_stopped` it is interrupted.

        A database in memory has only the one.
        """
        if self._path is None or not self._open:
            with self.read() as connection:
                yield connection
            return
        with _faults(self._name), contextlib.closing(_connect(self._path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.set_progress_handler(is_stopped, _STEPS_BETWEEN_LOOKS)
            connection.execute("BEGIN")
            yield connection

    @contextlib.contextmanager
    def write(self, *, survives_power_cut: bool = True) -> Iterator[sqlite3.Connection]:
        """Lend the connection for one transaction, committed at the end of the block.

        Whatever is committed survives the death of the process. Without `survives_power_cut` the
        disk is not waited for: a cut of the power may then take the last moments with it.
        """
        # IMMEDIATE: a reader that turns writer in mid-transaction is refused without waiting
        try:
            with self._transaction("BEGIN IMMEDIATE", synchronous=survives_power_cut) as connection:
                yield connection
        except StoreDamaged as error:
            with self._lock:
                repaired = text_index.repair(self._connection) if self._open else ""
            if repaired:
                raise StoreError(f"{self._name} could not be written: {repaired}") from error
            raise

    @contextlib.contextmanager
    def _transaction(
        self, begin: str, *, end: str = "COMMIT", synchronous: bool | None = None
    ) -> Iterator[sqlite3.Connection]:
        with self._lock, _faults(self._name):
            if not self._open:
                raise StoreError(f"{self._name} is closed")
            connection = self._connection
            if synchronous is not None:
                connection.execute(f"PRAGMA synchronous = {_SYNC_ALWAYS if synchronous else _SYNC_SELDOM}")
            connection.execute(begin)
            try:
                yield connection
                connection.execute(end)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _migrate(self) -> None:
        with self.read() as connection:
            if self._version(connection) == VERSION:
                return
        with self.write() as connection:
            add_functions(connection)
            # asked again: another process may have been first
            for step in MIGRATIONS[self._version(connection) :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise StoreError(
                f"{self._name} was written by a newer version of rolling-chat "
                f"(format {version}, this one knows {VERSION}); update the program"
            )
        return version

    def _use_wal(self) -> None:
        # the switch needs the file for itself for a moment and does not wait for it
        until = time.monotonic() + _PATIENCE
        with self._lock, _faults(self._name):
            while True:
                try:
                    self._connection.execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as error:
                    busy = error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
                    if not busy or time.monotonic() > until:
                        raise
                    time.sleep(0.01)


class _Connection(sqlite3.Connection):
    """A connection that things can be remembered of for as long as it lives."""


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {_SYNC_ALWAYS}")
    return connection


def _prepare(path: Path, name: str) -> None:
    """Make an empty file that only its owner may read, or look at the one that is there."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{name} cannot be made: {printable(str(path.parent), 0)} is not a folder") from None
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return
    if path.is_dir():
        raise StoreError(f"{name} is a folder; move it away")
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreError(f"{name} is not a file")
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if header and not _is_ours(header):
        raise StoreError(f"{name} is not one of rolling-chat's and was left as it is; move it away")


def _is_ours(header: bytes) -> bool:
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        return False
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_AT)
    return bool(application_id == APPLICATION_ID)


@contextlib.contextmanager
def _faults(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "") or ""
        said = next((line for start, line in _FAULTS.items() if code.startswith(start)), "")
        _log.error("%s: %s %s", name, code, error, exc_info=error)
        kind = StoreDamaged if text_index.is_damage(error) else StoreError
        raise kind(f"{name} {said or f'has failed: {printable(str(error), 0)}'}") from error
    except OSError as error:
        _log.error("%s: %s", name, error)
        raise StoreError(f"{name} cannot be opened: {error.strerror or error}") from error
