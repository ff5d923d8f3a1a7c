"""Many threads, many processes, and a program of another age, in one store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session, start_python
from tests.support.stores import Place


def test_threads_may_share_a_store(store: SessionStore) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.grow_reply(reply, f"{n};"), range(200)))
    (message,) = store.branch(session.id)
    assert sorted(map(int, message.text.rstrip(";").split(";"))) == list(range(200))


def test_many_processes_may_make_and_write_one_store_at_once(place: Place) -> None:
    code = """
import sys
from rolling_chat.messages import MadeBy, Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
input()
store = open_store(sys.argv[1])
session = store.create_session(folder="/x", model="m", rolling=False)
for n in range(100):
    store.append(session.id, Message("user", f"{sys.argv[2]} {n}"))
    reply = store.begin_reply(session.id, MadeBy("a", "b"))
    store.grow_reply(reply, "text")
    store.seal_reply(reply, Message("assistant", "text"))
"""
    writers = [start_python(code, place.address, str(n)) for n in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert (writer.returncode, said) == (0, "")
    store = place.open()
    assert [info.messages for info in store.sessions()] == [200] * 4
    store.close()
    assert place.faults() == []


def test_an_older_program_says_so_and_writes_nothing(place: Place) -> None:
    store = place.open()
    store.append(new_session(store).id, Message("user", "from another age"))
    store.close()
    place.make_newer()
    before = place.contents()
    with pytest.raises(StoreError, match=r"newer version of rolling-chat.*update the program") as caught:
        place.open()
    assert "\n" not in str(caught.value)
    assert place.contents() == before
