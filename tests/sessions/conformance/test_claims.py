"""Who has a session open; the dead do not keep it."""

from __future__ import annotations

import os
import platform

import pytest

from rolling_chat.sessions.records import Holder, StoreError
from tests.support.sessions import OFFLINE, new_session, start_writer
from tests.support.stores import Place


def test_the_first_to_claim_has_it(place: Place) -> None:
    first, second = place.open(), place.open(clock=lambda: 99.0)
    session = new_session(first).id
    assert first.claim(session) is None
    assert first.claim(session) is None
    holder = second.claim(session)
    assert isinstance(holder, Holder)
    assert (holder.pid, holder.host) == (os.getpid(), platform.node())
    assert holder.since > 1e9
    second.release(session)
    assert second.claim(session) is not None
    first.release(session)
    assert second.claim(session) is None
    assert first.claim(session) is not None
    second.close()
    assert first.claim(session) is None
    first.close()


def test_a_session_that_is_open_elsewhere_is_not_deleted(place: Place) -> None:
    first, second = place.open(), place.open()
    session = new_session(first).id
    first.claim(session)
    with pytest.raises(StoreError, match="open in another terminal"):
        second.delete(session)
    first.delete(session)
    first.release(session)
    first.close()
    second.close()


def test_another_process_that_lives_keeps_its_session(place: Place) -> None:
    store = place.open()
    session = new_session(store).id
    writer = start_writer(place.address, session)
    assert writer.stdout is not None
    writer.stdout.readline()
    holder = store.claim(session)
    assert holder is not None
    assert holder.pid == writer.pid
    # a second terminal may follow what is written
    assert store.branch(session)[0].text == "question 0"
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert store.claim(session) is None
    store.close()


def test_a_killed_process_that_nobody_has_waited_for_counts_as_dead(place: Place) -> None:
    store = place.open()
    session = new_session(store).id
    writer = start_writer(place.address, session)
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.kill()
    writer.stdout.read()  # ends when the process has; it is a zombie now
    while store.claim(session) is not None:
        assert writer.returncode is None
    writer.wait()
    writer.stdout.close()
    store.close()


def test_a_living_writers_reply_is_left_to_it(place: Place) -> None:
    first, second = place.open(), place.open()
    session = new_session(first).id
    reply = first.begin_reply(session, OFFLINE)  # without a claim
    assert second.claim(session) is None
    first.grow_reply(reply, "still here")
    assert second.branch(session)[0].text == "still here"
    first.close()
    second.close()
