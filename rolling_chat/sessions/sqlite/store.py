"""The session store in SQLite: each method is one short transaction."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

from rolling_chat.messages import FileTouch, Json, JsonObject, MadeBy, Message, Usage
from rolling_chat.sessions.records import (
    AskedBy,
    Counts,
    FileUse,
    Holder,
    LeftBranch,
    MissRow,
    RequestRecord,
    SearchHit,
    SessionChanges,
    SessionCopy,
    SessionInfo,
    SessionNotFound,
    SessionState,
    StoreDamaged,
    StoredSummary,
    StoreError,
    Stretch,
    UsageRow,
)
from rolling_chat.sessions.sqlite import (
    ancestry,
    claims,
    copies,
    directory,
    file_uses,
    kept_files,
    kept_pictures,
    requests,
    summary_rows,
    tree,
)
from rolling_chat.sessions.sqlite.claims import Owner
from rolling_chat.sessions.sqlite.database import Database
from rolling_chat.sessions.sqlite.kept_files import SqliteKeptFiles
from rolling_chat.sessions.sqlite.learned import SqliteLearnedModels
from rolling_chat.sessions.sqlite.message_search import search
from rolling_chat.sessions.sqlite.rows import message_number
from rolling_chat.sessions.store import SessionStore
from rolling_chat.text import one_line


class SqliteStore(SessionStore):
    """Sessions, their messages and their requests, in one SQLite database."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._owner = Owner.new()
        self._models = SqliteLearnedModels(database, clock)
        self._kept_files = SqliteKeptFiles(database, clock)

    @classmethod
    def open(cls, path: Path | None, *, clock: Callable[[], float] = time.time) -> SqliteStore:
        """Open the store at `path`, or one in memory for None.

        A missing file is made (mode 0600, its folder 0700). What is no session store, is damaged,
        or was written by a newer version is left as it is: StoreError.
        """
        return cls(Database.open(path), clock)

    @property
    def models(self) -> SqliteLearnedModels:
        return self._models

    @property
    def kept_files(self) -> SqliteKeptFiles:
        return self._kept_files

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def trouble(self) -> str:
        return ""

    def hurry(self, *, for_good: bool = False) -> None:
        """Do nothing: there is no connection to be lost."""

    def close(self) -> None:
        with contextlib.suppress(StoreError), self._database.write() as connection:
            tree.seal_owned(connection, self._owner, self._clock())
            claims.release_all(connection, self._owner)
        self._database.close()

    # Sessions

    def create_session(
        self,
        *,
        folder: str,
        model: str,
        rolling: bool,
        title: str = "",
        parent: str = "",
        api_base: str | None = "",
        asked_by: AskedBy | None = None,
        id: str = "",
    ) -> SessionInfo:
        with self._database.write() as connection:
            return directory.create(
                connection,
                folder=folder,
                model=model,
                rolling=rolling,
                title=title,
                parent=parent,
                api_base=api_base,
                asked_by=asked_by,
                id=id,
                now=self._clock(),
            )

    def task(self, asked_by: AskedBy) -> SessionInfo | None:
        with self._database.read() as connection:
            task = directory.task_of_call(connection, asked_by)
            return None if task is None else directory.info(connection, task)

    def tasks(self, session_id: str) -> list[SessionInfo]:
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return [directory.info(connection, task) for task in directory.tasks_of(connection, session)]

    def session(self, id_start: str) -> SessionInfo:
        with _naming(id_start), self._database.read() as connection:
            return directory.info(connection, directory.find(connection, id_start))

    def newest(self, folder: str) -> SessionInfo | None:
        return next(iter(self.sessions(folder, limit=1)), None)

    def sessions(self, folder: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        with self._database.read() as connection:
            return directory.listed(connection, folder, limit)

    def update_session(self, id: str, **changes: Unpack[SessionChanges]) -> SessionInfo:
        with self._database.write() as connection:
            session = directory.exact(connection, id)
            directory.change(connection, session, changes)
            return directory.info(connection, session)

    def state(self, session_id: str) -> SessionState:
        with self._database.read() as connection:
            return directory.state(connection, directory.exact(connection, session_id))

    def fork(self, session_id: str) -> SessionInfo:
        with self._database.write() as connection:
            return directory.fork(connection, directory.exact(connection, session_id), self._clock())

    def delete(self, session_id: str) -> None:
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            for task in directory.tasks_of(connection, session):
                self._unheld(connection, directory.info(connection, task).id)
            directory.delete(connection, session)
            requests.drop_unused(connection)
            kept_files.drop_unused(connection)
            kept_pictures.drop_unused(connection)

    # The tree

    def move_head(self, session_id: str, head: str, model: str) -> Json:
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            number = message_number(connection, head) if head else None
            return ancestry.move(connection, session, number, model, self._clock())

    def left_branches(self, session_id: str) -> list[LeftBranch]:
        with self._database.read() as connection:
            return ancestry.left_branches(connection, directory.exact(connection, session_id))

    def end_of_branch(self, session_id: str, message: str) -> str:
        with self._database.read() as connection:
            session, number = directory.exact(connection, session_id), message_number(connection, message)
            left = (branch.head for branch in ancestry.left_branches(connection, session))
            for end in (directory.info(connection, session).head, *left):
                if end and ancestry.is_on_branch(connection, number, message_number(connection, end)):
                    return end
        raise StoreError(f"message {message!r} is not of this session")

    def is_on_branch(self, message: str, head: str) -> bool:
        with self._database.read() as connection:
            return bool(message and head) and ancestry.is_on_branch(
                connection, message_number(connection, message), message_number(connection, head)
            )

    def is_blank(self, session_id: str) -> bool:
        with self._database.read() as connection:
            return ancestry.is_blank(connection, directory.exact(connection, session_id))

    # Messages

    def branch(self, session_id: str, head: str | None = None) -> list[Message]:
        with _naming(session_id), self._database.read() as connection:
            info = directory.info(connection, directory.exact(connection, session_id))
            tip = info.head if head is None else head
            return tree.branch(connection, message_number(connection, tip) if tip else None)

    def stretch(self, session_id: str, most: int | None, head: str | None = None) -> Stretch:
        with _naming(session_id), self._database.read() as connection:
            session = directory.exact(connection, session_id)
            tip = directory.info(connection, session).head if head is None else head
            return tree.stretch(connection, message_number(connection, tip) if tip else None, most)

    def line(self, session_id: str, head: str) -> Sequence[int]:
        with _naming(session_id), self._database.read() as connection:
            return tree.numbers(connection, message_number(connection, head))

    def some(self, numbers: Sequence[int]) -> Stretch:
        with self._database.read() as connection:
            return tree.some(connection, numbers)

    def append(self, session_id: str, message: Message, touched: Iterable[FileTouch] = ()) -> Message:
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            return tree.append(connection, session, message, self._clock(), touched)

    def files(self, session_id: str) -> list[FileUse]:
        with self._database.read() as connection:
            return file_uses.of_session(connection, directory.exact(connection, session_id))

    def last_known(self, path: str, head: str) -> str | None:
        with self._database.read() as connection:
            return file_uses.last_known(connection, path, message_number(connection, head) if head else None)

    def append_all(self, session_id: str, messages: Iterable[Message]) -> None:
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            for message in messages:
                tree.append(connection, session, message, self._clock())

    def begin_reply(self, session_id: str, made_by: MadeBy) -> str:
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            return tree.begin_reply(connection, session, made_by, self._owner, self._clock())

    def grow_reply(self, reply_id: str, text: str = "", reasoning: str = "") -> None:
        if not text and not reasoning:
            return
        # many times a second: these wait for the system, not for the disk
        with self._database.write(survives_power_cut=False) as connection:
            tree.grow_reply(connection, reply_id, text, reasoning)

    def seal_reply(self, reply_id: str, message: Message) -> Message:
        with self._database.write() as connection:
            return tree.seal_reply(connection, message_number(connection, reply_id), message, self._clock())

    def drop_reply(self, reply_id: str) -> None:
        with self._database.write() as connection:
            tree.drop_reply(connection, message_number(connection, reply_id), self._clock())

    def save_counts(self, counts: Counts) -> None:
        with self._database.write(survives_power_cut=False) as connection:
            tree.save_counts(connection, counts)

    def search(
        self,
        words: str,
        session_id: str | None = None,
        *,
        limit: int = 50,
        stop: threading.Event | None = None,
    ) -> list[SearchHit]:
        is_stopped = stop.is_set if stop is not None else _never
        with self._database.read_aside(is_stopped) as connection:
            within = None if session_id is None else directory.exact(connection, session_id)
            try:
                return search(connection, words, within, limit, is_stopped)
            except sqlite3.OperationalError:
                if is_stopped():
                    return []
                raise

    # Summaries

    def summary(self, session_id: str) -> StoredSummary | None:
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return summary_rows.newest(connection, session, summary_rows.head_of(connection, session))

    def summaries(self, session_id: str) -> list[StoredSummary]:
        with self._database.read() as connection:
            return summary_rows.of_session(connection, directory.exact(connection, session_id))

    def publish_summary(
        self, session_id: str, summary: StoredSummary, *, expected: int
    ) -> StoredSummary | None:
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            return summary_rows.publish(connection, session, summary, expected, self._clock())

    # Requests

    def log_request(
        self, record: RequestRecord, basis: JsonObject | None = None, *, keep_plan: bool = False
    ) -> str:
        with self._database.write() as connection:
            session = directory.exact(connection, record.session_id)
            if keep_plan:
                directory.change(connection, session, {"plan": record.plan})
            return requests.log(connection, session, record, basis, self._clock())

    def finish_request(
        self, id: str, *, usage: Usage, seconds: float, error: str = "", miss: tuple[str, int] = ("", 0)
    ) -> None:
        with self._database.write() as connection:
            requests.finish(connection, id, usage=usage, seconds=seconds, error=error, miss=miss)

    def requests(self, session_id: str) -> list[RequestRecord]:
        with self._database.read() as connection:
            return requests.of_session(connection, directory.exact(connection, session_id))

    def request_sizes(self, session_id: str, most: int) -> list[int]:
        with self._database.read() as connection:
            return requests.sizes_of(connection, directory.exact(connection, session_id), most)

    def last_answer(self, session_id: str, model: str = "") -> RequestRecord | None:
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return requests.last_answer(connection, session, model)

    def cache_misses(self, session_id: str) -> list[MissRow]:
        with self._database.read() as connection:
            return requests.misses_of(connection, directory.exact(connection, session_id))

    def usage(self, session_id: str) -> Usage:
        with self._database.read() as connection:
            return requests.usage_of(connection, directory.exact(connection, session_id))

    def usage_rows(self, by: str, session_id: str = "") -> list[UsageRow]:
        with self._database.read() as connection:
            session = directory.exact(connection, session_id) if session_id else None
            return requests.usage_rows(connection, by, session)

    def cost_since(self, at: float) -> float:
        with self._database.read() as connection:
            return requests.cost_since(connection, at)

    def request(self, id_start: str) -> RequestRecord:
        with self._database.read() as connection:
            return requests.find(connection, id_start)

    def basis(self, digest: str) -> JsonObject | None:
        with self._database.read() as connection:
            return requests.basis(connection, digest)

    # Who may use a session

    def share(self, session_id: str, member: str, *, may_write: bool | None) -> None:  # noqa: ARG002
        raise StoreError(
            "sessions in a file on this machine are shared with nobody; "
            "[sessions] store names a database for a team"
        )

    def shared_with(self, session_id: str) -> dict[str, bool]:  # noqa: ARG002
        return {}

    # Who has a session open

    def claim(self, session_id: str) -> Holder | None:
        with self._database.write() as connection:
            session, now = directory.exact(connection, session_id), self._clock()
            other = claims.holder(connection, session, self._owner, now)
            if other is None and claims.claim(connection, session, self._owner, now):
                tree.seal_abandoned(connection, session, now)
            return other

    def release(self, session_id: str) -> None:
        with self._database.write() as connection, contextlib.suppress(SessionNotFound):
            claims.release(connection, directory.exact(connection, session_id), self._owner)

    def has_news(self, session_id: str) -> bool:  # noqa: ARG002 - to look is as cheap
        return True

    # From one store to another

    def ids_in(self, session_id: str) -> list[str]:
        with _naming(session_id), self._database.read() as connection:
            return copies.ids_in(connection, directory.exact(connection, session_id))

    def missing(self, ids: Iterable[str]) -> list[str]:
        with self._database.read() as connection:
            return copies.missing(connection, ids)

    def copy_of(self, session_id: str, without: Collection[str] = ()) -> SessionCopy:
        with _naming(session_id), self._database.read() as connection:
            return copies.copy_of(connection, directory.exact(connection, session_id), frozenset(without))

    def adopt(self, copy: SessionCopy) -> SessionInfo:
        with self._database.write() as connection:
            for one in (copy, *copy.tasks):
                try:
                    session = self._unheld(connection, one.info.id)
                except SessionNotFound:
                    session = None
                copies.adopt(connection, session, one, self._clock())
        return self.session(copy.info.id)

    def _unheld(self, connection: sqlite3.Connection, session_id: str) -> int:
        """Return the row of a session that nobody else has open."""
        session = directory.exact(connection, session_id)
        other = claims.holder(connection, session, self._owner, self._clock())
        if other is not None:
            short = directory.info(connection, session).short
            raise StoreError(
                f"session {short} is open in another terminal (process {other.pid}); close it first"
            )
        return session


def _never() -> bool:
    return False


@contextlib.contextmanager
def _naming(session_id: str) -> Iterator[None]:
    """Say of damage which session it was met in: others may well be whole."""
    try:
        yield
    except StoreDamaged as error:
        raise StoreDamaged(
            f"session {one_line(session_id, 40)} cannot be read: its part of {error}. "
            "Sessions on other parts of the file can still be opened"
        ) from error
