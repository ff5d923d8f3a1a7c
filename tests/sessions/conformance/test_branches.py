"""The head, and the branches that it was moved away from."""

from __future__ import annotations

import random

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session, start_python
from tests.support.stores import Place


def say(store: SessionStore, session: str, *texts: str) -> list[Message]:
    return [store.append(session, Message("user", text)) for text in texts]


def test_branches_are_listed_the_last_written_first_by_what_was_said_in_them(store: SessionStore) -> None:
    session = new_session(store).id
    first, *_, end = say(store, session, "a", "b", "c")
    store.move_head(session, first.id, "m")
    *_, other = say(store, session, "d")
    store.move_head(session, "", "m")
    assert [(left.head, left.begins, left.messages, left.own) for left in store.left_branches(session)] == [
        (other.id, "a", 2, 2),
        (end.id, "b", 3, 2),
    ]
    store.move_head(session, first.id, "m")
    assert [(left.begins, left.own) for left in store.left_branches(session)] == [("d", 1), ("b", 2)]
    store.move_head(session, other.id, "m")
    assert [left.head for left in store.left_branches(session)] == [end.id]


def test_a_branch_begins_with_the_person_wherever_it_parts(store: SessionStore) -> None:
    session = new_session(store).id
    (asked,) = say(store, session, "question")
    answer = store.append(session, Message("assistant", "\x1b[31manswer"))
    store.move_head(session, asked.id, "m")
    (left,) = store.left_branches(session)
    assert (left.head, left.begins) == (answer.id, "␛[31manswer")
    store.move_head(session, answer.id, "m")
    say(store, session, "thanks")
    store.move_head(session, asked.id, "m")
    assert [left.begins for left in store.left_branches(session)] == ["thanks"]


def test_a_head_is_a_message_of_the_session(store: SessionStore) -> None:
    session, other = new_session(store).id, new_session(store).id
    say(store, session, "a")
    (foreign,) = say(store, other, "b")
    for nonsense in (foreign.id, "m999", "x", "m-1"):
        with pytest.raises(StoreError):
            store.move_head(session, nonsense, "m")
    assert len(store.branch(session)) == 1


def test_a_forks_own_messages_are_not_the_origins_to_go_to(store: SessionStore) -> None:
    session = new_session(store).id
    shared, end = say(store, session, "a", "b")
    fork = store.fork(session).id
    (own,) = say(store, fork, "c")
    with pytest.raises(StoreError, match="not of this session"):
        store.move_head(session, own.id, "m")
    store.move_head(fork, shared.id, "m")
    assert [left.head for left in store.left_branches(fork)] == [own.id]
    assert store.end_of_branch(fork, end.id) == own.id
    assert store.left_branches(session) == []


def test_a_fork_outlives_its_origin_with_what_it_took_back(store: SessionStore) -> None:
    session = new_session(store).id
    shared, end = say(store, session, "a", "b")
    fork = store.fork(session).id
    store.move_head(fork, shared.id, "m")
    store.delete(session)
    assert [left.head for left in store.left_branches(fork)] == [end.id]
    assert [message.text for message in store.branch(fork, end.id)] == ["a", "b"]


def test_a_reply_that_grows_is_no_branch_yet(store: SessionStore) -> None:
    session = new_session(store).id
    (asked,) = say(store, session, "a")
    store.begin_reply(session, OFFLINE)
    store.update_session(session, head=asked.id)
    assert store.left_branches(session) == []


def test_what_stands_above_what(store: SessionStore) -> None:
    session = new_session(store).id
    first, second = say(store, session, "a", "b")
    assert store.is_on_branch(first.id, second.id)
    assert store.is_on_branch(second.id, second.id)
    assert not store.is_on_branch(second.id, first.id)
    assert not store.is_on_branch("", first.id)
    assert not store.is_on_branch(first.id, "")


_MOVER = """
import random, sys
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore

store, session, rng = open_store(sys.argv[1]), sys.argv[2], random.Random(sys.argv[3])
for number in range(80):
    branch = store.branch(session)
    if branch and rng.random() < 0.3:
        store.move_head(session, rng.choice(branch).id, "m")
    print(store.append(session, Message("user", f"{sys.argv[3]} {number}")).id)
"""


def test_two_processes_in_one_session_lose_nothing_and_see_no_lock(place: Place) -> None:
    store = place.open()
    session = new_session(store).id
    movers = [start_python(_MOVER, place.address, session, name) for name in ("a", "b", "c")]
    said: list[str] = []
    for mover in movers:
        out, err = mover.communicate()
        assert err == ""
        said += out.split()
    ends = [store.session(session).head, *(left.head for left in store.left_branches(session))]
    reached = {message.id for end in ends for message in store.branch(session, end)}
    assert len(said) == 240
    assert reached == set(said)
    store.close()
    assert place.faults() == []


@pytest.mark.parametrize("seed", range(5))
def test_what_is_on_a_branch_is_so_whatever_was_asked_before(store: SessionStore, seed: int) -> None:
    chance, session = random.Random(seed), new_session(store).id
    above: dict[str, set[str]] = {}
    head: list[str] = []
    for step in range(120):
        if above and chance.random() < 0.2:
            back = chance.choice(list(above))
            store.move_head(session, back, "m")
            head = [one.id for one in store.branch(session)]
        (said,) = say(store, session, f"{step}")
        head = [*head, said.id]
        above[said.id] = set(head)
        for _ in range(4):
            message, end = chance.choice(list(above)), chance.choice([said.id, *above])
            assert store.is_on_branch(message, end) == (message in above[end])
