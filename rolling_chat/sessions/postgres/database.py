"""The connections to PostgreSQL: made with care for secrets, and made again when they are lost."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import Connection
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from rolling_chat.sessions.postgres.address import Address
from rolling_chat.sessions.postgres.migrations import migrate, use_schema
from rolling_chat.sessions.postgres.refusals import refusal
from rolling_chat.sessions.records import StoreError, StoreOutOfReach
from rolling_chat.text import printable

_log = logging.getLogger("rolling_chat.sessions")
# it reports every try to the terminal
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
logging.getLogger("psycopg.pool").propagate = False

_T = TypeVar("_T")
Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Mapping[str, Any]

_MAX_CONNECTIONS = 6  # of one process: its screen, its search, what it reads in the background
_CONNECT_SECONDS = 10
# seconds that a lost connection is waited for: the screen stands still meanwhile, other threads can wait
_PATIENCE_OF_SCREEN, _PATIENCE = 3.0, 20.0
# seconds that the screen and others wait again for what was out of reach just now
_GLANCE_OF_SCREEN, _GLANCE = 0.05, 1.0
_BLINK = 1.0  # seconds out of reach that nobody is told of
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 1.0
_TRY = 1.0  # seconds that the pool is waited for: once it has given up, only who asks makes it try anew

# what to do about a connection that cannot be made
_ADVICE = {
    "does not match host name": "; name the host in the address as its certificate does",
    "certificate verify failed": "; sslrootcert in the address names the file of the authority to trust",
    "does not support SSL": "; have its administrator turn TLS on",
}

# the server goes down, comes up, has no connection left, or let two transactions wait for each other
_PASSING = ("08", "57P", "53300", "40001", "40P01")


class Database:
    """A pool of connections for any thread of this process; every fault comes out as a StoreError."""

    def __init__(self, address: Address, first: Connection[Row]) -> None:
        self._address = address
        self.name = f"the session store at {address.shown}"
        self._is_closed = False
        self._is_lost = False
        self._is_leaving = False
        self._hurried_at = 0.0
        self._failing_since = 0.0  # 0: it answers
        self._pool = ConnectionPool(
            address.conninfo,
            connection_class=_class_with(first),
            kwargs={"autocommit": True, "connect_timeout": _CONNECT_SECONDS},
            configure=use_schema,
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            max_idle=120.0,
            reconnect_timeout=_TRY,
            open=True,
        )

    @classmethod
    def open(cls, address: Address) -> Database:
        """Connect, and bring the tables up to this version of the program.

        Raises StoreError, and changes nothing, where the tables are a newer version's.
        """
        name = f"the session store at {address.shown}"
        try:
            first = psycopg.connect(address.conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        except psycopg.Error as error:
            _log.error("%s: %s", name, address.redacted(str(error)))
            raise StoreError(f"{name} cannot be opened: {_reason(address, error)}") from None
        try:
            migrate(first, name)
            return cls(address, first)
        except psycopg.Error as error:
            first.close()
            raise StoreError(f"{name} cannot be opened: {_reason(address, error)}") from error
        except BaseException:
            first.close()
            raise

    @property
    def trouble(self) -> str:
        """A line where the database has been out of reach for a while; empty where it is not."""
        since = self._failing_since
        if not since or time.monotonic() - since < _BLINK:
            return ""
        return f"{self.name} is out of reach and is tried again; what you type is kept on this machine"

    def hurry(self, *, for_good: bool) -> None:
        """Let those who wait for a lost connection now give up at their next try.

        `for_good`: whoever comes later waits no longer than the screen does.
        """
        self._hurried_at = time.monotonic()
        self._is_leaving = self._is_leaving or for_good

    def close(self) -> None:
        """Close the connections; closing twice is no fault."""
        self._is_closed = True
        self._pool.close()

    def run(
        self, statement: str, values: Values | None = None, *, patience: float | None = None
    ) -> list[Row]:
        """Run one statement, committed when this returns, and return its rows.

        When the connection is lost it is run again, by a new one: it must not matter whether the first
        time was committed. It can ask for that by its value `again`.
        """
        return self._tried(lambda connection, again: _run(connection, statement, values, again), patience)

    def run_together(self, statements: Sequence[tuple[str, Values]]) -> list[list[Row]]:
        """Run statements in one transaction, sent without waiting for each; return the rows of each.

        They are run again as the one of `run` is.
        """
        return self._tried(lambda connection, again: _run_together(connection, statements, again), None)

    def _tried(self, work: Callable[[Connection[Row], bool], _T], patience: float | None) -> _T:
        began = time.monotonic()
        until = began + (self._patience() if patience is None else patience)
        delay = _FIRST_DELAY
        again = False
        while True:
            if self._is_closed:
                raise StoreError(f"{self.name} is closed")
            try:
                left = max(_GLANCE_OF_SCREEN, until - time.monotonic())
                with self._connection(min(left, _TRY)) as connection:
                    result = work(connection, again)
                self._is_lost, self._failing_since = False, 0.0
                return result
            except psycopg.Error as error:
                if not _may_pass(error):
                    raise self._fault(error) from error
                _log.warning("%s: %s", self.name, self._address.redacted(str(error)))
                again = True
                self._failing_since = self._failing_since or time.monotonic()
                if time.monotonic() + delay > until or began < self._hurried_at:
                    raise self._lost() from error
                if _is_connection_lost(error):
                    self._drain()
            time.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - so that clients do not come at once
            delay = min(2 * delay, _LONGEST_DELAY)

    def redacted(self, text: str) -> str:
        """Return a text without the password of the address."""
        return self._address.redacted(text)

    def row(self, statement: str, values: Values | None = None) -> Row:
        """Run a statement that returns exactly one row."""
        (row,) = self.run(statement, values)
        return row

    @contextmanager
    def own_connection(self) -> Iterator[Connection[Row]]:
        """Open a connection beside the pool, for what occupies one for long. Raises psycopg.Error."""
        connection = psycopg.connect(
            self._address.conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS
        )
        with connection:
            use_schema(connection)
            yield connection

    def _connection(self, seconds: float) -> Any:
        try:
            return self._pool.connection(timeout=seconds)
        except PoolClosed:
            raise StoreError(f"{self.name} is closed") from None

    def _patience(self) -> float:
        if self._is_leaving or _is_on_screen():
            return _GLANCE_OF_SCREEN if self._is_lost else _PATIENCE_OF_SCREEN
        return _GLANCE if self._is_lost else _PATIENCE

    def _drain(self) -> None:
        """Have every connection made anew: one that was lost was not lost alone."""
        with suppress(PoolClosed):
            self._pool.drain()

    def _lost(self) -> StoreOutOfReach:
        self._is_lost = True
        return StoreOutOfReach(self.name)

    def _fault(self, error: psycopg.Error) -> StoreError:
        if isinstance(error, PoolClosed):
            return StoreError(f"{self.name} is closed")
        known = refusal(error)
        if known is not None:
            return known
        _log.error("%s: %s", self.name, self._address.redacted(str(error)))
        return StoreError(f"{self.name} has failed: {_reason(self._address, error)}")


def _run(connection: Connection[Row], statement: str, values: Values | None, again: bool) -> list[Row]:
    cursor = connection.execute(statement, {"again": again, **(values or {})})
    return cursor.fetchall() if cursor.description else []


def _run_together(
    connection: Connection[Row], statements: Sequence[tuple[str, Values]], again: bool
) -> list[list[Row]]:
    with connection.pipeline() as pipeline, connection.transaction():
        cursors = [connection.execute(one, {"again": again, **values}) for one, values in statements]
        pipeline.sync()
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _is_on_screen() -> bool:
    """Return whether an event loop stands still while this thread waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _may_pass(error: psycopg.Error) -> bool:
    if isinstance(error, PoolClosed):
        return False
    if isinstance(error, PoolTimeout):
        return True
    # two sessions went on from one message at once
    is_overtaken = error.diag.constraint_name == "message_run_depth_key"
    return is_overtaken or _is_connection_lost(error) or (error.sqlstate or "").startswith(_PASSING)


def _is_connection_lost(error: psycopg.Error) -> bool:
    if isinstance(error, PoolTimeout):
        return False
    state = error.sqlstate
    return isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(("08", "57P")))


def _reason(address: Address, error: psycopg.Error) -> str:
    """Return the first line of what the server or the system said, without secrets, and what to do."""
    said = error.diag.message_primary or str(error).strip()
    line = said.splitlines()[0] if said else type(error).__name__
    advice = next((what for sign, what in _ADVICE.items() if sign in line), "")
    return printable(address.redacted(line), 250) + advice


def _class_with(first: Connection[Row]) -> type[Connection[Row]]:
    """Return a class whose first connection is one that is open already."""
    waiting = [first]
    lock = threading.Lock()

    class Pooled(Connection[Row]):
        @classmethod
        def connect(cls, *arguments: Any, **options: Any) -> Any:
            with lock:
                if waiting:
                    return waiting.pop()
            return super().connect(*arguments, **options)

    return Pooled
