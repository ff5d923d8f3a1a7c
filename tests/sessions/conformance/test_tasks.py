"""Tasks have sessions of their own, which belong to the call that began them."""

from __future__ import annotations

import pytest

from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.sessions.records import AskedBy, RequestRecord, SessionInfo, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.stores import Place

CALL = ToolCall("t1", "task", '{"prompt": "look"}')


def _session(store: SessionStore, asked_by: AskedBy | None = None) -> SessionInfo:
    return store.create_session(folder="/w", model="openai/x", rolling=False, asked_by=asked_by)


def _asking(store: SessionStore) -> tuple[SessionInfo, AskedBy]:
    """A session whose reply calls for two tasks."""
    session = _session(store)
    store.append(session.id, Message("user", "go"))
    reply = store.append(session.id, Message("assistant", "", tool_calls=(CALL, CALL)))
    return session, AskedBy(reply.id, 1)


def _task(store: SessionStore, asked_by: AskedBy, text: str = "look") -> SessionInfo:
    task = _session(store, asked_by)
    store.append(task.id, Message("user", text))
    return store.session(task.id)


def _spend(store: SessionStore, session: SessionInfo, cost: float) -> None:
    record = RequestRecord("", session.id, "", "openai/x", None, "d", 1, "h", 10, 12)
    store.finish_request(store.log_request(record), usage=Usage(100, 10, cost=cost), seconds=1.0)


def test_a_task_is_found_by_its_call(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    task = _task(store, asked_by)
    assert task.task_of == session.id
    assert store.task(asked_by) == task
    assert store.tasks(session.id) == [task]
    assert store.tasks(task.id) == []
    assert store.task(AskedBy(asked_by.reply_id, 0)) is None


def test_the_lists_of_sessions_leave_tasks_out_and_a_search_finds_them(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    task = _task(store, asked_by, "zebra")
    assert [one.id for one in store.sessions()] == [session.id]
    assert [one.id for one in store.sessions("/w", limit=3)] == [session.id]
    newest = store.newest("/w")
    assert newest is not None
    assert newest.id == session.id
    assert [hit.session_id for hit in store.search("zebra")] == [task.id]
    assert store.session(task.short).id == task.id
    with pytest.raises(SessionNotFound, match=f"there are: {session.short}"):
        store.session("zzzzzz")


def test_what_a_task_used_counts_once_and_for_its_session(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    task, other = _task(store, asked_by), _session(store)
    for one, cost in ((session, 1.0), (task, 2.0), (other, 4.0)):
        _spend(store, one, cost)
    assert [store.usage(one.id).cost for one in (session, task, other)] == [3.0, 2.0, 4.0]
    rows = {row.name: (row.requests, row.usage.cost) for row in store.usage_rows("purpose", session.id)}
    assert rows == {"answer": (1, 1.0), "task": (1, 2.0)}
    (folder,) = store.usage_rows("folder")
    assert (folder.requests, folder.usage.cost) == (3, 7.0)


def test_a_task_is_deleted_with_its_session(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    task = _task(store, asked_by, "zebra")
    _spend(store, task, 1.0)
    store.delete(session.id)
    with pytest.raises(SessionNotFound):
        store.session(task.id)
    assert store.search("zebra") == []
    assert store.usage_rows("day") == []


def test_a_fork_keeps_the_tasks_of_what_it_shares(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    task = _task(store, asked_by)
    fork = store.fork(session.id)
    assert store.session(task.id).task_of == session.id
    store.delete(session.id)
    assert store.session(task.id).task_of == fork.id
    assert store.task(asked_by) is not None
    store.delete(fork.id)
    with pytest.raises(SessionNotFound):
        store.session(task.id)


def test_a_copy_of_a_task_is_a_session_of_the_users(store: SessionStore) -> None:
    session, asked_by = _asking(store)
    copy = store.fork(_task(store, asked_by).id)
    assert copy.task_of == ""
    assert {one.id for one in store.sessions()} == {session.id, copy.id}
    store.delete(session.id)
    assert [one.text for one in store.branch(copy.id)] == ["look"]


def test_a_session_whose_task_is_open_elsewhere_is_not_deleted(place: Place) -> None:
    store, other = place.open(), place.open()
    session, asked_by = _asking(store)
    task = _task(store, asked_by)
    other.claim(task.id)
    with pytest.raises(StoreError, match=f"session {task.short} is open in another terminal"):
        store.delete(session.id)
    assert store.session(session.id).id == session.id
    other.release(task.id)
    store.delete(session.id)
    other.close()
    store.close()


def test_a_task_of_no_reply_is_refused(store: SessionStore) -> None:
    with pytest.raises(StoreError):
        _session(store, AskedBy("m99", 0))
    assert store.sessions() == []
