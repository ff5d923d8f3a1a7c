"""Summaries in the store: only ever added, and the newest one on the branch is the one that counts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import SessionInfo, StoredSummary, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import new_session, old_store


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "sessions.db")
    yield opened
    opened.close()


@pytest.fixture
def session(store: SessionStore) -> SessionInfo:
    """Ten messages, m1 to m10."""
    info = new_session(store)
    for number in range(10):
        store.append(info.id, Message("user", f"message {number}"))
    return info


def publish(
    store: SessionStore, session: SessionInfo, text: str, through: str, expected: int
) -> StoredSummary | None:
    return store.publish_summary(session.id, StoredSummary(text, through), expected=expected)


def test_it_comes_back_as_it_was_with_a_generation_and_its_place(
    store: SessionStore, session: SessionInfo
) -> None:
    made = StoredSummary("They met \ud800.", "m4", "abc", "demo/offline", 0, 900, 60)
    kept = store.publish_summary(session.id, made, expected=0)
    assert kept is not None
    assert (kept.text, kept.through, kept.digest, kept.made_by) == (
        "They met \ud800.",
        "m4",
        "abc",
        "demo/offline",
    )
    assert (kept.generation, kept.place, kept.tokens_before, kept.tokens_after) == (1, 4, 900, 60)
    assert kept.created_at > 0
    assert store.summary(session.id) == kept
    assert store.session(session.id).has_summary
    assert [info.has_summary for info in store.sessions()] == [True]


def test_what_it_skips_comes_back_and_goes_into_a_fork(store: SessionStore, session: SessionInfo) -> None:
    made = StoredSummary("They met.", "m9", skipped=((1, 3), (5, 6)))
    kept = store.publish_summary(session.id, made, expected=0)
    assert kept is not None
    assert (kept.skipped, kept.place, kept.covers) == (((1, 3), (5, 6)), 9, 6)
    forked = store.summary(store.fork(session.id).id)
    assert forked is not None
    assert forked.skipped == kept.skipped


def test_only_who_knew_the_newest_one_may_follow_it(store: SessionStore, session: SessionInfo) -> None:
    assert publish(store, session, "one", "m2", 0) is not None
    assert publish(store, session, "late", "m4", 0) is None
    assert publish(store, session, "early", "m4", 2) is None
    two = publish(store, session, "two", "m4", 1)
    assert two is not None
    assert two.generation == 2
    assert [one.text for one in store.summaries(session.id)] == ["one", "two"]


def test_new_messages_are_no_hindrance_and_a_branch_that_was_left_is(
    store: SessionStore, session: SessionInfo
) -> None:
    store.append(session.id, Message("user", "more"))
    assert publish(store, session, "one", "m8", 0) is not None
    store.move_head(session.id, "m6", "m")
    assert publish(store, session, "two", "m9", 0) is None


def test_behind_what_it_covers_the_one_before_counts_again(store: SessionStore, session: SessionInfo) -> None:
    publish(store, session, "one", "m3", 0)
    publish(store, session, "two", "m7", 1)
    for head, text in (("m7", "two"), ("m6", "one"), ("m3", "one"), ("m2", None), ("", None), ("m10", "two")):
        store.move_head(session.id, head, "m")
        newest = store.summary(session.id)
        assert (newest.text if newest else None) == text
        assert store.session(session.id).has_summary == (text is not None)
    assert len(store.summaries(session.id)) == 2


def test_an_empty_one_takes_back_what_was_before(store: SessionStore, session: SessionInfo) -> None:
    publish(store, session, "one", "m3", 0)
    publish(store, session, "", "m3", 1)
    assert not store.session(session.id).has_summary
    assert store.summary(session.id).generation == 2


def test_a_fork_takes_along_what_is_on_its_branch(store: SessionStore, session: SessionInfo) -> None:
    publish(store, session, "one", "m3", 0)
    two = publish(store, session, "two", "m9", 1)
    store.move_head(session.id, "m6", "m")
    fork = store.fork(session.id)
    assert store.summary(fork.id).text == "one"
    assert publish(store, fork, "the fork's", "m5", 1).generation == 2
    store.move_head(session.id, "m10", "m")
    assert store.summary(session.id) == two
    store.delete(session.id)
    assert [one.text for one in store.summaries(fork.id)] == ["one", "the fork's"]


def test_a_session_that_another_process_has_takes_none(
    store: SessionStore, session: SessionInfo, tmp_path: Path
) -> None:
    other = open_store(tmp_path / "sessions.db")
    other.claim(session.id)
    with pytest.raises(StoreError, match="open in another terminal"):
        publish(store, session, "one", "m3", 0)
    other.close()
    assert store.summaries(session.id) == []


@pytest.mark.parametrize("through", ["", "m99", "nonsense"])
def test_what_covers_nothing_is_not_kept(store: SessionStore, session: SessionInfo, through: str) -> None:
    with contextlib.suppress(StoreError):
        assert publish(store, session, "one", through, 0) is None
    assert store.summaries(session.id) == []


def test_a_store_of_before_there_were_summaries_is_brought_up_to_date(tmp_path: Path) -> None:
    database = tmp_path / "old.db"
    old_store(database, 3)
    store = open_store(database)
    info = store.session("abcdef0123")
    assert (info.title, info.has_summary, info.summary_noted) == ("old", False, False)
    assert publish(store, info, "one", "m1", 0) is not None
    store.close()
