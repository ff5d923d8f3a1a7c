"""Sessions that go from one store to another, and back: nothing twice, nothing lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.messages import FileTouch, Message, ToolCall, Usage, picture_part
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import AskedBy, RequestRecord, SessionNotFound, StoredSummary, StoreError
from rolling_chat.sessions.store import CopyingStore
from tests.support.sessions import OFFLINE, new_session
from tests.support.stores import PLACES, Place

Clocks = Callable[[], float]
COPYING = ["sqlite"]  # the places whose stores are a CopyingStore


@pytest.fixture(params=COPYING)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def store(there: CopyingStore) -> CopyingStore:
    return there


@pytest.fixture
def clock() -> Clocks:
    """A clock that goes on by a second whenever it is looked at."""
    return itertools.count(1_000_000.0).__next__


@pytest.fixture
def here(clock: Clocks) -> Iterator[CopyingStore]:
    """The store of one machine."""
    opened = open_store(None, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def there(place: Place, clock: Clocks) -> Iterator[CopyingStore]:
    """That of another."""
    opened = place.open(clock=clock)
    yield opened
    opened.close()


def say(store: CopyingStore, session: str, *texts: str) -> list[Message]:
    return [store.append(session, Message("user", text)) for text in texts]


def spend(store: CopyingStore, session: str, head: str) -> str:
    record = RequestRecord("", session, head, "m", {"seen": 1}, "d", 1, "h", 10, 12)
    return store.log_request(record, {"system": "s\x00"})


def full_session(store: CopyingStore) -> str:
    """A session with a branch that was left, pins, a summary, requests, files and a picture."""
    session = new_session(store, title="mine").id
    first, second, third = say(store, session, "zebra", "b", "c \ud800")
    store.move_head(session, first.id, "m")
    picture = picture_part("data:image/png;base64,iVBORw0KGgo=")
    said = store.append(session, Message("user", ({"type": "text", "text": "look"}, picture)))
    result = store.append(session, Message("tool", "text"), [FileTouch("/w/a.py", "read", "1" * 64)])
    store.save_counts({said.id: {"o200k_base": 7}})
    store.publish_summary(session, StoredSummary("They looked.", said.id, "digest"), expected=0)
    store.finish_request(spend(store, session, first.id), usage=Usage(10, 5, cost=0.5), seconds=1.0)
    store.update_session(
        session, pins=[first.id], excluded=[second.id], notes={f"{third.id}/1": "a note"}, plan={"seen": 3},
        servers={"files": True}, effort="high", api_base="http://here", rolling=True, summary_noted=True,
    )  # fmt: skip
    spend(store, session, result.id)
    return session


def test_a_session_arrives_whole(here: CopyingStore, there: CopyingStore) -> None:
    session = full_session(here)
    arrived = there.adopt(here.copy_of(session))
    assert arrived == here.session(session)
    assert there.copy_of(session) == here.copy_of(session)
    assert there.branch(session) == here.branch(session)
    assert there.left_branches(session) == here.left_branches(session)
    assert there.stretch(session, None) == here.stretch(session, None)
    assert there.requests(session) == here.requests(session)
    assert there.basis("d") == {"system": "s\x00"}
    assert there.summaries(session) == here.summaries(session)
    assert there.files(session) == here.files(session)
    assert [hit.session_id for hit in there.search("zebra")] == [session]
    assert there.session(arrived.short) == arrived


def test_what_is_there_already_is_not_there_twice(here: CopyingStore, there: CopyingStore) -> None:
    session = full_session(here)
    copy = here.copy_of(session)
    first = there.adopt(copy)
    assert there.adopt(copy) == first
    assert here.adopt(there.copy_of(session)) == here.session(session)
    assert there.copy_of(session) == here.copy_of(session) == copy
    assert there.usage(session) == here.usage(session)


def test_what_was_added_since_is_all_that_is_needed(here: CopyingStore, there: CopyingStore) -> None:
    session = full_session(here)
    there.adopt(here.copy_of(session))
    say(here, session, "more", "and more")
    spent = here.requests(session)[-1]
    here.finish_request(spent.id, usage=Usage(100), seconds=2.0)
    copy = here.copy_of(session)
    new = there.missing(placed.message.id for placed in copy.messages)
    assert new == [message.id for message in here.branch(session)[-2:]]
    needed = [placed for placed in copy.messages if placed.message.id in new]
    there.adopt(replace(copy, messages=needed))
    assert there.copy_of(session) == copy
    assert there.requests(session)[-1].usage == Usage(100)


def test_of_two_that_went_on_the_later_leads_and_the_other_is_a_branch(
    here: CopyingStore, there: CopyingStore
) -> None:
    session = new_session(here).id
    say(here, session, "a")
    there.adopt(here.copy_of(session))
    (ours,) = say(here, session, "ours")
    (theirs,) = say(there, session, "theirs")
    there.update_session(session, title="theirs")
    here.adopt(there.copy_of(session))
    there.adopt(here.copy_of(session))
    for store in (here, there):
        assert [message.text for message in store.branch(session)] == ["a", "theirs"]
        assert [left.head for left in store.left_branches(session)] == [ours.id]
        assert store.session(session).head == theirs.id
        assert store.session(session).title == "theirs"


@pytest.mark.parametrize("is_origin_first", [True, False])
def test_a_fork_and_its_origin_share_what_they_shared(
    here: CopyingStore, there: CopyingStore, is_origin_first: bool
) -> None:
    origin = new_session(here).id
    say(here, origin, "a", "b")
    fork = here.fork(origin).id
    (own,) = say(here, fork, "the fork's")
    here.move_head(fork, here.branch(fork)[0].id, "m")
    say(here, origin, "the origin's")
    for session in (origin, fork) if is_origin_first else (fork, origin):
        there.adopt(here.copy_of(session))
    for session in (origin, fork):
        assert there.copy_of(session) == here.copy_of(session)
        assert there.left_branches(session) == here.left_branches(session)
    assert there.session(fork).parent == origin
    there.delete(origin)
    assert [message.text for message in there.branch(fork, own.id)] == ["a", "b", "the fork's"]


def test_a_task_comes_behind_the_call_that_began_it(here: CopyingStore, there: CopyingStore) -> None:
    session = new_session(here).id
    reply = here.append(session, Message("assistant", "", tool_calls=(ToolCall("t", "task", "{}"),)))
    task = here.create_session(folder="/w", model="m", rolling=False, asked_by=AskedBy(reply.id, 0)).id
    say(here, task, "look")
    with pytest.raises(StoreError, match="there is no message"):
        there.adopt(here.copy_of(task))
    assert there.sessions() == []
    there.adopt(here.copy_of(session))
    there.adopt(here.copy_of(task))
    assert there.task(AskedBy(reply.id, 0)) == there.session(task)
    assert there.session(task).task_of == session


def test_a_reply_that_still_grows_stays_until_it_is_whole(here: CopyingStore, there: CopyingStore) -> None:
    session = new_session(here).id
    (asked,) = say(here, session, "well?")
    reply = here.begin_reply(session, OFFLINE)
    here.grow_reply(reply, "hm")
    there.adopt(here.copy_of(session))
    assert there.branch(session) == [asked]
    here.seal_reply(reply, Message("assistant", "hm."))
    there.adopt(here.copy_of(session))
    assert [message.text for message in there.branch(session)] == ["well?", "hm."]


def test_a_copy_with_a_gap_leaves_nothing(here: CopyingStore, there: CopyingStore) -> None:
    session = new_session(here).id
    say(here, session, "a", "b", "c")
    copy = here.copy_of(session)
    with pytest.raises(StoreError, match="there is no message"):
        there.adopt(replace(copy, messages=[copy.messages[0], copy.messages[2]]))
    with pytest.raises(SessionNotFound):
        there.session(session)
    assert there.missing([copy.messages[0].message.id]) == [copy.messages[0].message.id]


def test_a_session_that_is_open_elsewhere_takes_nothing_in(here: CopyingStore, place: Place) -> None:
    session = new_session(here).id
    say(here, session, "a")
    there, other = place.open(), place.open()
    there.adopt(here.copy_of(session))
    other.claim(session)
    say(here, session, "b")
    with pytest.raises(StoreError, match="open in another terminal"):
        there.adopt(here.copy_of(session))
    other.close()
    there.adopt(here.copy_of(session))
    assert len(there.branch(session)) == 2
    there.close()


def test_messages_that_are_missing_are_named_in_order(store: CopyingStore) -> None:
    session = new_session(store).id
    (said,) = say(store, session, "a")
    others = [new_id(), "m1", new_id()]
    assert store.missing([others[0], said.id, *others[1:]]) == others
    assert store.missing([]) == []


def test_old_names_go_along(there: CopyingStore, tmp_path: Path) -> None:
    old = open_store(None)
    session = new_session(old).id
    copy = old.copy_of(session)
    there.adopt(replace(copy, info=replace(copy.info, short="wcrnwmc2kd")))
    assert there.session("wcrn").id == session
    old.close()
