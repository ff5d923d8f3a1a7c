"""Summaries in the store: only ever added, and the newest one on the branch is the one that counts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.records import StoredSummary, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sessions import new_session
from tests.support.stores import Place


@dataclass(frozen=True)
class Talk:
    """A session, and the ids of its ten messages: "m1" is the first."""

    id: str
    ids: Mapping[str, str]


@pytest.fixture
def talk(store: SessionStore) -> Talk:
    session = new_session(store).id
    said = [store.append(session, Message("user", f"message {number}")) for number in range(10)]
    return Talk(session, {f"m{number}": message.id for number, message in enumerate(said, 1)})


def publish(store: SessionStore, talk: Talk, text: str, through: str, expected: int) -> StoredSummary | None:
    summary = StoredSummary(text, talk.ids.get(through, through))
    return store.publish_summary(talk.id, summary, expected=expected)


def test_it_comes_back_as_it_was_with_a_generation_and_its_place(store: SessionStore, talk: Talk) -> None:
    made = StoredSummary("They met \ud800.", talk.ids["m4"], "abc", "demo/offline", 0, 900, 60)
    kept = store.publish_summary(talk.id, made, expected=0)
    assert kept is not None
    assert (kept.text, kept.through, kept.digest, kept.made_by) == (
        "They met \ud800.",
        talk.ids["m4"],
        "abc",
        "demo/offline",
    )
    assert (kept.generation, kept.place, kept.tokens_before, kept.tokens_after) == (1, 4, 900, 60)
    assert kept.created_at > 0
    assert store.summary(talk.id) == kept
    assert store.session(talk.id).has_summary
    assert [info.has_summary for info in store.sessions()] == [True]


def test_what_it_skips_comes_back_and_goes_into_a_fork(store: SessionStore, talk: Talk) -> None:
    made = StoredSummary("They met.", talk.ids["m9"], skipped=((1, 3), (5, 6)))
    kept = store.publish_summary(talk.id, made, expected=0)
    assert kept is not None
    assert (kept.skipped, kept.place, kept.covers) == (((1, 3), (5, 6)), 9, 6)
    forked = store.summary(store.fork(talk.id).id)
    assert forked is not None
    assert forked.skipped == kept.skipped


def test_only_who_knew_the_newest_one_may_follow_it(store: SessionStore, talk: Talk) -> None:
    assert publish(store, talk, "one", "m2", 0) is not None
    assert publish(store, talk, "late", "m4", 0) is None
    assert publish(store, talk, "early", "m4", 2) is None
    two = publish(store, talk, "two", "m4", 1)
    assert two is not None
    assert two.generation == 2
    assert [one.text for one in store.summaries(talk.id)] == ["one", "two"]


def test_new_messages_are_no_hindrance_and_a_branch_that_was_left_is(store: SessionStore, talk: Talk) -> None:
    store.append(talk.id, Message("user", "more"))
    assert publish(store, talk, "one", "m8", 0) is not None
    store.move_head(talk.id, talk.ids["m6"], "m")
    assert publish(store, talk, "two", "m9", 0) is None


def test_behind_what_it_covers_the_one_before_counts_again(store: SessionStore, talk: Talk) -> None:
    publish(store, talk, "one", "m3", 0)
    publish(store, talk, "two", "m7", 1)
    for head, text in (("m7", "two"), ("m6", "one"), ("m3", "one"), ("m2", None), ("", None), ("m10", "two")):
        store.move_head(talk.id, talk.ids.get(head, ""), "m")
        newest = store.summary(talk.id)
        assert (newest.text if newest else None) == text
        assert store.session(talk.id).has_summary == (text is not None)
    assert len(store.summaries(talk.id)) == 2


def test_an_empty_one_takes_back_what_was_before(store: SessionStore, talk: Talk) -> None:
    publish(store, talk, "one", "m3", 0)
    publish(store, talk, "", "m3", 1)
    assert not store.session(talk.id).has_summary
    assert store.summary(talk.id).generation == 2


def test_a_fork_takes_along_what_is_on_its_branch(store: SessionStore, talk: Talk) -> None:
    publish(store, talk, "one", "m3", 0)
    two = publish(store, talk, "two", "m9", 1)
    store.move_head(talk.id, talk.ids["m6"], "m")
    fork = store.fork(talk.id)
    assert store.summary(fork.id).text == "one"
    assert publish(store, Talk(fork.id, talk.ids), "the fork's", "m5", 1).generation == 2
    store.move_head(talk.id, talk.ids["m10"], "m")
    assert store.summary(talk.id) == two
    store.delete(talk.id)
    assert [one.text for one in store.summaries(fork.id)] == ["one", "the fork's"]


def test_a_session_that_another_process_has_takes_none(place: Place) -> None:
    store, other = place.open(), place.open()
    session = new_session(store).id
    said = store.append(session, Message("user", "hi"))
    other.claim(session)
    with pytest.raises(StoreError, match="open in another terminal"):
        store.publish_summary(session, StoredSummary("one", said.id), expected=0)
    other.close()
    assert store.summaries(session) == []
    store.close()


def test_of_those_that_knew_the_same_one_publishes(place: Place) -> None:
    stores = [place.open() for _ in range(3)]
    session = new_session(stores[0]).id
    said = stores[0].append(session, Message("user", "hi"))
    racers = 6

    def race(expected: int) -> list[StoredSummary]:
        gate = threading.Barrier(racers)

        def run(number: int) -> StoredSummary | None:
            gate.wait(PATIENCE_SECONDS)
            made = StoredSummary(f"{expected}.{number}", said.id)
            return stores[number % len(stores)].publish_summary(session, made, expected=expected)

        return [kept for kept in pool.map(run, range(racers)) if kept is not None]

    with ThreadPoolExecutor(racers) as pool:
        kept = [race(expected) for expected in range(10)]
    assert [len(winners) for winners in kept] == [1] * 10
    assert [winners[0] for winners in kept] == stores[0].summaries(session)
    for store in stores:
        store.close()
    assert place.faults() == []


@pytest.mark.parametrize("through", ["", "m99", "nonsense"])
def test_what_covers_nothing_is_not_kept(store: SessionStore, talk: Talk, through: str) -> None:
    with contextlib.suppress(StoreError):
        assert publish(store, talk, "one", through, 0) is None
    assert store.summaries(talk.id) == []
