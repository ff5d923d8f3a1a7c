"""The counts of a session: what is stored of them, read back, and measured by a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.context.measured_sizes import Confirmed, MeasuredSizes
from rolling_chat.events import Listener
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import Counts, StoreError
from rolling_chat.sessions.store import SessionStore

MODEL = "openai/gpt-4o"


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return open_store(tmp_path / "sessions.db")


def opened(store: SessionStore, session: str) -> tuple[Conversation, SessionCounts]:
    counts = SessionCounts()
    return Conversation(store, session, Listener(), counts), counts


def new_session(store: SessionStore) -> str:
    session = store.create_session(folder="/", model=MODEL, rolling=True).id
    store.append_all(
        session, [Message("user", "why?"), Message("assistant", "because"), Message("user", "so?")]
    )
    return session


def test_raw_and_measured_sizes_are_stored_in_one_column_and_read_apart(store: SessionStore) -> None:
    session = new_session(store)
    conversation, counts = opened(store, session)
    first, second, _ = conversation.messages
    counts.memo.add(first, "o200k_base", 3)
    sizes = {(0, 7): 99, (2, 7): 8, (4, 7): 99}  # the system message, the reply, none
    counts.measure(conversation.messages, sizes, MODEL)
    conversation.save_counts()
    assert store.stretch(session, None).counts == {
        first.id: {"o200k_base": 3},
        second.id: {f"=7={MODEL}": 8},
    }

    again, read = opened(store, session)
    first, second, _ = again.messages
    assert read.memo.counts_of(first) == {"o200k_base": 3}
    assert read.memo.counts_of(second) == {}
    assert (read.known_tokens(first), read.known_tokens(second)) == (3, 8)
    planned = [Message("system", "careful"), *again.messages]
    sizes = read.measured_sizes(planned, again.messages, MODEL)
    assert measured(sizes, planned) == {2: 8}
    assert not read.measured_sizes(planned, again.messages, "another").sizes


def measured(sizes: MeasuredSizes, planned: list[Message]) -> dict[int, int]:
    found = {index: sizes.find(index, message) for index, message in enumerate(planned)}
    return {index: tokens for index, tokens in found.items() if tokens is not None}


def test_a_message_that_is_not_planned_as_it_was_counted_has_no_measured_size(store: SessionStore) -> None:
    conversation, counts = opened(store, new_session(store))
    counts.measure(conversation.messages, {(1, 4): 5, (2, 7): 8}, MODEL)
    first, second, third = conversation.messages
    planned = [Message("system", "careful"), first, Message("assistant", "shorter", id=second.id), third]
    sizes = counts.measured_sizes(planned, conversation.messages, MODEL)
    assert measured(sizes, planned) == {1: 5, 2: 8}
    planned[2] = Message("assistant", "quite another", id=second.id)
    assert measured(sizes, planned) == {1: 5}


def test_a_result_has_a_size_for_each_form_in_which_it_was_sent(store: SessionStore) -> None:
    session = new_session(store)
    conversation, counts = opened(store, session)
    counts.measure(conversation.messages, {(2, 7): 8, (2, 4): 5}, MODEL)
    conversation.save_counts()
    again, read = opened(store, session)
    planned = [Message("system", "careful"), *again.messages]
    sizes = read.measured_sizes(planned, again.messages, MODEL)
    assert sizes.find(2, Message("assistant", "because")) == 8
    assert sizes.find(2, Message("assistant", "[cut")) == 5


def test_a_size_that_an_earlier_version_stored_is_that_of_the_whole_message(store: SessionStore) -> None:
    session = new_session(store)
    store.save_counts({store.branch(session)[1].id: {f"={MODEL}": 8, "o200k_base": 2}})
    conversation, counts = opened(store, session)
    planned = [Message("system", "careful"), *conversation.messages]
    assert measured(counts.measured_sizes(planned, conversation.messages, MODEL), planned) == {2: 8}


def test_the_count_of_a_beginning_of_the_branch_is_read_back(store: SessionStore) -> None:
    session = new_session(store)
    conversation, counts = opened(store, session)
    sizes = {(1, 4): 5, (2, 7): 8}
    counts.measure(conversation.messages[:2], sizes, MODEL, Confirmed(MODEL, 153, 140, 120))
    conversation.save_counts()
    again, read = opened(store, session)
    known = read.measured_sizes([Message("system", "careful"), *again.messages], again.messages, MODEL)
    assert read.confirmed(again.messages, known) == Confirmed(MODEL, 153, 140, 120)
    assert read.confirmed(again.messages[:1], known) is None
    assert read.confirmed(again.messages, known.of("another")) is None


def test_only_what_is_new_is_saved(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session(store)
    store.save_counts({store.branch(session)[0].id: {"o200k_base": 3}})
    conversation, counts = opened(store, session)
    saved: list[Counts] = []
    monkeypatch.setattr(store, "save_counts", saved.append)
    conversation.save_counts()
    assert not saved
    first, _, third = conversation.messages
    counts.memo.add(first, "class", 4)
    counts.memo.add(third, "class", 5)
    conversation.save_counts()
    conversation.save_counts()
    assert saved == [{first.id: {"o200k_base": 3, "class": 4}, third.id: {"class": 5}}]


def test_counts_that_could_not_be_stored_are_stored_the_next_time(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_session(store)
    conversation, counts = opened(store, session)
    counts.memo.add(conversation.messages[0], "class", 4)

    def fail(_: Counts) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "save_counts", fail)
        with pytest.raises(StoreError):
            conversation.save_counts()
    conversation.save_counts()
    assert store.stretch(session, None).counts == {conversation.messages[0].id: {"class": 4}}
