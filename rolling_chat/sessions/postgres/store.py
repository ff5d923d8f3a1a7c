"""The session store in PostgreSQL: each method is one statement, waited for once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar, Unpack

from rolling_chat.messages import FileTouch, Json, JsonObject, MadeBy, Message, Usage
from rolling_chat.process_identity import this_process
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.own_copy import as_own
from rolling_chat.sessions.postgres import copies, directory, requests, summaries
from rolling_chat.sessions.postgres.address import Address
from rolling_chat.sessions.postgres.database import Database
from rolling_chat.sessions.postgres.heartbeat import Heartbeat
from rolling_chat.sessions.postgres.kept_files import PostgresKeptFiles
from rolling_chat.sessions.postgres.learned import PostgresLearnedModels
from rolling_chat.sessions.postgres.listening import Listening
from rolling_chat.sessions.postgres.refusals import HeldElsewhere, Other
from rolling_chat.sessions.postgres.rows import pack, unpack
from rolling_chat.sessions.postgres.search import search
from rolling_chat.sessions.postgres.tree import Tree
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
    SessionState,
    StoredSummary,
    StoreError,
    Stretch,
    UsageRow,
)
from rolling_chat.sessions.store import SessionStore

_T = TypeVar("_T")

_CLAIM = "SELECT other, abandoned FROM claim(%(session)s, %(store)s, %(process)s, %(gone)s, %(now)s)"
_RELEASE = "SELECT release(%(session)s, %(store)s)"
_RELEASE_ALL = "SELECT release_all(%(store)s)"
_FORK = "SELECT fork(%(session)s, %(id)s, %(now)s)"
_DELETE = "SELECT delete_session(%(session)s, %(store)s)"
_SHARE = "SELECT share_session(%(session)s, %(member)s, %(may_write)s)"
_SHARED_WITH = """
    SELECT share.member::text, share.may_write FROM seen(%(session)s) AS place
    JOIN share ON share.session = place.number ORDER BY share.member
"""
_IS_BLANK = "SELECT NOT is_spoken_in FROM seen(%(session)s)"
# those that the session made, and those that it shares with the one that it was forked from
_FILES = """
    SELECT file.path, file.action, file.sha256, message.id, message.created_at
    FROM seen(%(session)s) AS place CROSS JOIN LATERAL (
        SELECT message.number FROM message WHERE message.session = place.number
        UNION
        SELECT one.number FROM line_of(place.head) AS line CROSS JOIN LATERAL (
            SELECT message.number FROM message
            WHERE message.run = line.run AND message.depth BETWEEN line.first AND line.last
            OFFSET 0  -- by the index, whatever a policy makes of it
        ) AS one
    ) AS own
    CROSS JOIN LATERAL (SELECT * FROM file WHERE file.message = own.number OFFSET 0) AS file
    CROSS JOIN LATERAL (SELECT * FROM message WHERE message.number = own.number OFFSET 0) AS message
    ORDER BY file.number
"""
_LAST_KNOWN = """
    SELECT file.sha256 FROM file JOIN message ON message.number = file.message
    JOIN line_of((SELECT number FROM message WHERE id = %(head)s)) AS line
        ON line.run = message.run AND message.depth <= line.last
    WHERE file.path_key = md5(%(path)s)::uuid AND file.path = %(path)s AND file.action IN ('read', 'written')
    ORDER BY file.number DESC LIMIT 1
"""


class PostgresStore(SessionStore):
    """Sessions, their messages and their requests, in one schema of a PostgreSQL database."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._store = secrets.token_hex(8)
        self._process = dataclasses.asdict(this_process())
        self._tree = Tree(database, self._store, self._process)
        self._heartbeat = Heartbeat(database, self._store, self._process)
        self._listening = Listening(database)
        self._models = PostgresLearnedModels(database, clock)
        self._kept_files = PostgresKeptFiles(database, clock)

    @classmethod
    def open(cls, address: str, *, clock: Callable[[], float] = time.time) -> PostgresStore:
        """Open the store in a database; its tables are made if they are missing.

        Raises StoreError, and changes nothing, for one that a newer version of the program wrote.
        """
        return cls(Database.open(Address.of(address)), clock)

    @property
    def models(self) -> PostgresLearnedModels:
        return self._models

    @property
    def kept_files(self) -> PostgresKeptFiles:
        return self._kept_files

    @property
    def is_remote(self) -> bool:
        return True

    @property
    def trouble(self) -> str:
        return self._database.trouble

    def hurry(self, *, for_good: bool = False) -> None:
        self._database.hurry(for_good=for_good)

    def close(self) -> None:
        self.hurry(for_good=True)
        self._heartbeat.stop()
        self._listening.stop()
        with contextlib.suppress(StoreError):
            for reply in self._tree.open_replies:
                self._tree.drop_reply(reply, self._clock())
            self._database.run(_RELEASE_ALL, {"store": self._store})
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
        columns = {
            "folder": folder,
            "model": model,
            "rolling": rolling,
            "title": title,
            "parent": parent,
            "api_base": api_base,
        }
        return directory.create(self._database, columns, asked_by, id, self._clock())

    def task(self, asked_by: AskedBy) -> SessionInfo | None:
        return directory.task_of_call(self._database, asked_by)

    def tasks(self, session_id: str) -> list[SessionInfo]:
        return directory.tasks(self._database, session_id)

    def session(self, id_start: str) -> SessionInfo:
        return directory.find(self._database, id_start)

    def newest(self, folder: str) -> SessionInfo | None:
        return next(iter(self.sessions(folder, limit=1)), None)

    def sessions(self, folder: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        return directory.listed(self._database, folder, limit)

    def update_session(self, id: str, **changes: Unpack[SessionChanges]) -> SessionInfo:
        return directory.change(self._database, id, self._store, changes)

    def state(self, session_id: str) -> SessionState:
        return directory.state(self._database, session_id)

    def fork(self, session_id: str) -> SessionInfo:
        made, now = new_id(), self._clock()
        values = {"session": pack(session_id), "id": made, "now": now}
        (is_made,) = self._database.row(_FORK, values)
        if is_made:
            return directory.exact(self._database, made)
        return self.adopt(as_own(self.copy_of(session_id), made, now))

    def delete(self, session_id: str) -> None:
        self._where_held(
            lambda: self._database.run(_DELETE, {"session": pack(session_id), "store": self._store}),
        )

    # The tree

    def move_head(self, session_id: str, head: str, model: str) -> Json:
        return self._where_held(
            lambda: directory.move_head(
                self._database,
                session_id,
                store=self._store,
                head=head,
                model=model,
                now=self._clock(),
            ),
        )

    def left_branches(self, session_id: str) -> list[LeftBranch]:
        return directory.left_branches(self._database, session_id)

    def end_of_branch(self, session_id: str, message: str) -> str:
        return directory.end_of_branch(self._database, session_id, message)

    def is_on_branch(self, message: str, head: str) -> bool:
        return bool(message and head) and directory.is_on_branch(self._database, message, head)

    def is_blank(self, session_id: str) -> bool:
        return bool(self._database.row(_IS_BLANK, {"session": pack(session_id)})[0])

    # Messages

    def branch(self, session_id: str, head: str | None = None) -> list[Message]:
        return self._tree.branch(session_id, head)

    def stretch(self, session_id: str, most: int | None, head: str | None = None) -> Stretch:
        return self._tree.stretch(session_id, most, head)

    def line(self, session_id: str, head: str) -> Sequence[int]:
        return self._tree.line(session_id, head)

    def some(self, numbers: Sequence[int]) -> Stretch:
        return self._tree.some(numbers)

    def append(self, session_id: str, message: Message, touched: Iterable[FileTouch] = ()) -> Message:
        (stored,) = self._where_held(lambda: self._tree.append(session_id, [message], self._clock(), touched))
        return stored

    def files(self, session_id: str) -> list[FileUse]:
        rows = self._database.run(_FILES, {"session": pack(session_id)})
        return [FileUse(FileTouch(unpack(path), *rest), message, at) for path, *rest, message, at in rows]

    def last_known(self, path: str, head: str) -> str | None:
        rows = self._database.run(_LAST_KNOWN, {"path": pack(path), "head": pack(head)})
        return str(rows[0][0]) if rows else None

    def append_all(self, session_id: str, messages: Iterable[Message]) -> None:
        added = list(messages)
        self._where_held(lambda: self._tree.append(session_id, added, self._clock()))

    def begin_reply(self, session_id: str, made_by: MadeBy) -> str:
        self._heartbeat.start()
        return self._where_held(lambda: self._tree.begin_reply(session_id, made_by, self._clock()))

    def grow_reply(self, reply_id: str, text: str = "", reasoning: str = "") -> None:
        if text or reasoning:
            self._tree.grow_reply(reply_id, text, reasoning)

    def seal_reply(self, reply_id: str, message: Message) -> Message:
        return self._tree.seal_reply(reply_id, message, self._clock())

    def drop_reply(self, reply_id: str) -> None:
        self._tree.drop_reply(reply_id, self._clock())

    def save_counts(self, counts: Counts) -> None:
        if counts:
            self._tree.save_counts(counts)

    def search(
        self,
        words: str,
        session_id: str | None = None,
        *,
        limit: int = 50,
        stop: threading.Event | None = None,
    ) -> list[SearchHit]:
        within = None
        if session_id is not None:
            within = self._database.row("SELECT number FROM seen(%(id)s)", {"id": pack(session_id)})[0]
        return search(self._database, words, within, limit, stop.is_set if stop is not None else _never)

    # Summaries

    def summary(self, session_id: str) -> StoredSummary | None:
        return summaries.newest(self._database, session_id)

    def summaries(self, session_id: str) -> list[StoredSummary]:
        return summaries.every(self._database, session_id)

    def publish_summary(
        self, session_id: str, summary: StoredSummary, *, expected: int
    ) -> StoredSummary | None:
        return self._where_held(
            lambda: summaries.publish(
                self._database, session_id, summary, store=self._store, expected=expected, now=self._clock()
            ),
        )

    # Requests

    def log_request(
        self, record: RequestRecord, basis: JsonObject | None = None, *, keep_plan: bool = False
    ) -> str:
        store = self._store if keep_plan else ""
        return self._where_held(lambda: requests.log(self._database, record, basis, store, self._clock()))

    def finish_request(
        self, id: str, *, usage: Usage, seconds: float, error: str = "", miss: tuple[str, int] = ("", 0)
    ) -> None:
        requests.finish(self._database, id, usage=usage, seconds=seconds, error=error, miss=miss)

    def requests(self, session_id: str) -> list[RequestRecord]:
        return requests.of_session(self._database, session_id)

    def request_sizes(self, session_id: str, most: int) -> list[int]:
        return requests.sizes_of(self._database, session_id, most)

    def last_answer(self, session_id: str, model: str = "") -> RequestRecord | None:
        return requests.last_answer(self._database, session_id, model)

    def cache_misses(self, session_id: str) -> list[MissRow]:
        return requests.misses_of(self._database, session_id)

    def usage(self, session_id: str) -> Usage:
        return requests.usage_of(self._database, session_id)

    def usage_rows(self, by: str, session_id: str = "") -> list[UsageRow]:
        return requests.usage_rows(self._database, by, session_id)

    def cost_since(self, at: float) -> float:
        return requests.cost_since(self._database, at)

    def request(self, id_start: str) -> RequestRecord:
        return requests.find(self._database, id_start)

    def basis(self, digest: str) -> JsonObject | None:
        return requests.basis(self._database, digest)

    # Who may use a session

    def share(self, session_id: str, member: str, *, may_write: bool | None) -> None:
        values = {"session": pack(session_id), "member": pack(member), "may_write": may_write}
        self._database.run(_SHARE, values)

    def shared_with(self, session_id: str) -> dict[str, bool]:
        return dict(self._database.run(_SHARED_WITH, {"session": pack(session_id)}))

    # Who has a session open

    def claim(self, session_id: str) -> Holder | None:
        self._heartbeat.start()
        other = self._claimed(session_id)
        if other is not None and other.store and other.process.is_gone():
            other = self._claimed(session_id, gone=other.store)
        if other is None:
            self._listening.leave(session_id)
            return None
        self._listening.follow(session_id)
        return other.holder

    def release(self, session_id: str) -> None:
        self._listening.leave(session_id)
        self._database.run(_RELEASE, {"session": pack(session_id), "store": self._store})

    def has_news(self, session_id: str) -> bool:
        return self._listening.has_news(session_id)

    # From one store to another

    def ids_in(self, session_id: str) -> list[str]:
        return copies.ids_in(self._database, session_id)

    def missing(self, ids: Iterable[str]) -> list[str]:
        return copies.missing(self._database, ids)

    def copy_of(self, session_id: str, without: Collection[str] = ()) -> SessionCopy:
        return copies.copy_of(self._database, session_id, without)

    def adopt(self, copy: SessionCopy) -> SessionInfo:
        return self._where_held(lambda: copies.adopt(self._database, self._store, copy))

    def _claimed(self, session_id: str, gone: str = "") -> Other | None:
        values = {"session": pack(session_id), "process": json.dumps(self._process), "gone": gone}
        other, abandoned = self._database.row(_CLAIM, {**values, "store": self._store, "now": self._clock()})
        for reply in abandoned or ():
            self._tree.drop_reply(reply, self._clock())
        return None if other is None else Other.of(other)

    def _where_held(self, work: Callable[[], _T]) -> _T:
        """Do what is refused while another has the session open; once more if its process has ended."""
        try:
            return work()
        except HeldElsewhere as error:
            if not error.other.process.is_gone():
                raise
            self._database.run(
                "SELECT forget(%(session)s, %(gone)s)",
                {"session": error.other.session, "gone": error.other.store},
            )
            return work()


def _never() -> bool:
    return False
