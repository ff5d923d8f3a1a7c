"""Whether the process that has a session open is still there, by its number, its start and its machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.process_identity import Process, this_process
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session, start_python

DAY = 24 * 60 * 60.0


def pretend_held_by(store: SessionStore, process: Process) -> None:
    """Make every claim and every growing reply another process's."""
    columns = dataclasses.asdict(process)
    with store._database.write() as connection:
        for table in ("claim", "growing"):
            connection.execute(
                f"UPDATE {table} SET store = 'other', pid = :pid, host = :host,"
                " machine = :machine, started = :started",
                columns,
            )


def test_a_reused_process_number_is_not_taken_for_the_holder(database: Path) -> None:
    store = open_store(database)
    session = new_session(store).id
    store.claim(session)
    store.grow_reply(store.begin_reply(session, OFFLINE), "half")
    pretend_held_by(store, dataclasses.replace(this_process(), started="long ago"))
    assert store.claim(session) is None
    (reply,) = store.branch(session)
    assert (reply.text, reply.ending) == ("half", Ending.CANCELLED)
    store.append(session, Message("user", "go on"))
    store.close()


def test_a_reply_whose_writer_died_before_its_first_byte_leaves_no_trace(database: Path) -> None:
    store = open_store(database)
    session = new_session(store).id
    store.claim(session)
    asked = store.append(session, Message("user", "hello?"))
    store.begin_reply(session, OFFLINE)
    pretend_held_by(store, dataclasses.replace(this_process(), started="long ago"))
    assert store.claim(session) is None
    assert store.branch(session) == [asked]
    store.close()


@pytest.mark.parametrize(("hours_ago", "held"), [(1, True), (23, True), (25, False)])
def test_what_another_machine_holds_is_its_own_for_a_day(hours_ago: int, held: bool) -> None:
    now = 10 * DAY
    store = open_store(None, clock=lambda: now)
    session = new_session(store).id
    store.claim(session)
    store.append(session, Message("user", "hi"))
    store.grow_reply(store.begin_reply(session, OFFLINE), "half")
    pretend_held_by(store, Process(1, "elsewhere", "boot pid:[1]", "1"))
    now += hours_ago * 3600
    holder = store.claim(session)
    assert (holder is not None) is held
    if holder is None:
        store.append(session, Message("user", "go on"))
    store.close()


def test_what_this_machine_held_before_it_was_started_anew_is_free() -> None:
    store = open_store(None)
    session = new_session(store).id
    store.claim(session)
    pretend_held_by(store, dataclasses.replace(this_process(), machine="another-boot pid:[1]"))
    assert store.claim(session) is None
    store.close()


def test_a_process_knows_itself_and_a_dead_one() -> None:
    assert not this_process().is_gone()
    child = start_python("pass")
    child.communicate()
    assert dataclasses.replace(this_process(), pid=child.pid).is_gone()
