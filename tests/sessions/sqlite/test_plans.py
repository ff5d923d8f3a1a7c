"""How SQLite goes about what the store asks of it: by an index, however much is stored."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator

import pytest

from rolling_chat.messages import FileTouch, Message, Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import RequestRecord, SessionNotFound, StoredSummary, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session

# steps that look at every row, but for those of a branch and of what is being written at the moment
_SCAN = re.compile(r"SCAN (?!sqlite_|growing\b|above\b|branch\b|message_text VIRTUAL TABLE|CONSTANT ROW)")
_READS = re.compile(r"\s*(SELECT|WITH|UPDATE|DELETE)\b", re.IGNORECASE)


@pytest.fixture
def asked() -> Iterator[set[str]]:
    """The statements that stores have run since the test began."""
    statements: set[str] = set()
    connect = sqlite3.connect

    def tracing(*args: object, **options: object) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(statements.add)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", tracing)
        yield statements


def scans(store: SessionStore, statements: set[str]) -> list[str]:
    """The steps that look at every row of a table, each with its statement."""
    found = []
    with store._database.read() as connection:
        for statement in filter(_READS.match, statements):
            with contextlib.suppress(sqlite3.Error):  # what belongs to an index within SQLite
                for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                    if _SCAN.match(step):
                        found.append(f"{step}: {' '.join(statement.split())[:300]}")
    return found


def test_nothing_that_a_turn_does_looks_at_all_rows(asked: set[str]) -> None:
    store = open_store(None)
    session = new_session(store).id
    said = store.append(session, Message("user", "zebra"), [FileTouch("/w/a", "read", "1" * 64)])
    asked.clear()
    store.claim(session)
    record = RequestRecord("", session, said.id, "m", {"n": 1}, "d", 1, "h", 1, 1)
    request = store.log_request(record, {"system": "s"})
    reply = store.begin_reply(session, OFFLINE)
    store.grow_reply(reply, "an ans")
    store.seal_reply(reply, Message("assistant", "an answer"))
    store.finish_request(request, usage=Usage(10, 5), seconds=1.0)
    store.save_counts({said.id: {"m": 1}})
    store.publish_summary(session, StoredSummary("so", said.id), expected=0)
    store.update_session(session, pins=[said.id])
    store.move_head(session, said.id, "m")
    for read in (
        store.session, store.state, store.branch, store.left_branches, store.summary, store.requests,
        store.last_answer, store.cache_misses, store.usage, store.files, store.tasks, store.is_blank,
        store.copy_of,
    ):  # fmt: skip
        read(session)
    store.stretch(session, 5)
    store.some(store.line(session, reply))
    store.request_sizes(session, 5)
    store.usage_rows("model", session)
    store.cost_since(0.0)
    store.last_known("/w/a", reply)
    store.kept_files.of_branch(reply)
    store.end_of_branch(session, reply)
    store.missing([said.id])
    store.adopt(store.copy_of(session))
    store.search("zebra", session)
    store.newest("/work")
    store.fork(session)
    store.release(session)
    assert len(asked) > 40
    assert scans(store, asked) == []
    store.close()


@pytest.mark.parametrize("name", ["0", "01234567", "0189", "zzzz", "00000000-0000-7000-8000-000000000000"])
def test_a_name_is_looked_up(asked: set[str], name: str) -> None:
    store = open_store(None)
    new_session(store)
    asked.clear()
    with contextlib.suppress(SessionNotFound):
        store.session(name)
    with contextlib.suppress(StoreError):
        store.request(f"q{name}")
    named = {statement for statement in asked if "LIMIT 6" in statement and "short" in statement}
    assert named
    assert scans(store, named) == []
    store.close()
