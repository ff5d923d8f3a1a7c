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
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session
from tests.support.stores import PLACES, Place

Clocks = Callable[[], float]
# into each store, and out of each
INTO = [("memory", "sqlite"), ("memory", "postgres")]
WAYS = [*INTO, ("postgres", "sqlite")]
EVERY_WAY = [*WAYS, ("postgres", "postgres")]
into_each = pytest.mark.parametrize("way", INTO, ids=" to ".join, indirect=True)
every_way = pytest.mark.parametrize("way", EVERY_WAY, ids=" to ".join, indirect=True)


@pytest.fixture(params=WAYS, ids=" to ".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def place(way: tuple[str, str], tmp_path: Path) -> Place:
    return PLACES[way[1]](tmp_path)


@pytest.fixture
def store(there: SessionStore) -> SessionStore:
    return there


@pytest.fixture
def clock() -> Clocks:
    """A clock that goes on by a second whenever it is looked at."""
    return itertools.count(1_000_000.0).__next__


@pytest.fixture
def here(way: tuple[str, str], clock: Clocks, tmp_path: Path) -> Iterator[SessionStore]:
    """The store of one machine."""
    opened = PLACES[way[0]](tmp_path).open(clock=clock) if way[0] in PLACES else open_store(None, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def there(place: Place, clock: Clocks) -> Iterator[SessionStore]:
    """That of another."""
    opened = place.open(clock=clock)
    yield opened
    opened.close()


def say(store: SessionStore, session: str, *texts: str) -> list[Message]:
    return [store.append(session, Message("user", text)) for text in texts]


def spend(store: SessionStore, session: str, head: str) -> str:
    record = RequestRecord("", session, head, "m", {"seen": 1}, "d", 1, "h", 10, 12)
    return store.log_request(record, {"system": "s\x00"})


def full_session(store: SessionStore) -> str:
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
    reply = store.append(session, Message("assistant", "", tool_calls=(ToolCall("t", "task", "{}"),)))
    task = store.create_session(folder="/w", model="m", rolling=False, asked_by=AskedBy(reply.id, 0)).id
    spend(store, task, say(store, task, "look")[0].id)
    return session


@every_way
def test_a_session_arrives_whole(here: SessionStore, there: SessionStore) -> None:
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
    assert set(there.ids_in(session)) == set(here.ids_in(session))
    (task,) = there.tasks(session)
    assert there.copy_of(task.id) == here.copy_of(task.id)
    assert there.usage(session) == here.usage(session)


@into_each
def test_what_is_there_already_is_not_there_twice(here: SessionStore, there: SessionStore) -> None:
    session = full_session(here)
    copy = here.copy_of(session)
    first = there.adopt(copy)
    assert there.adopt(copy) == first
    assert here.adopt(there.copy_of(session)) == here.session(session)
    assert there.copy_of(session) == here.copy_of(session) == copy
    assert there.usage(session) == here.usage(session)


def test_what_was_added_since_is_all_that_is_needed(here: SessionStore, there: SessionStore) -> None:
    session = full_session(here)
    there.adopt(here.copy_of(session))
    say(here, session, "more", "and more")
    spent = here.requests(session)[-1]
    here.finish_request(spent.id, usage=Usage(100), seconds=2.0)
    copy = here.copy_of(session)
    ids = here.ids_in(session)
    new = there.missing(ids)
    under_way = here.requests(here.tasks(session)[0].id)[0]
    said = [message.id for message in here.branch(session)[-2:]]
    assert set(new) == {*said, spent.id, under_way.id}
    needed = here.copy_of(session, without=set(ids) - set(new))
    assert [placed.message.id for placed in needed.messages] == said
    assert [record.id for record in needed.requests] == [spent.id]
    assert [*needed.bases] == ["d"]
    there.adopt(needed)
    assert there.copy_of(session) == copy
    assert there.requests(session)[-1].usage == Usage(100)


def test_of_two_that_went_on_the_later_leads_and_the_other_is_a_branch(
    here: SessionStore, there: SessionStore
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
    here: SessionStore, there: SessionStore, is_origin_first: bool
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


def test_a_task_comes_behind_the_call_that_began_it(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    reply = here.append(session, Message("assistant", "", tool_calls=(ToolCall("t", "task", "{}"),)))
    task = here.create_session(folder="/w", model="m", rolling=False, asked_by=AskedBy(reply.id, 0)).id
    say(here, task, "look")
    with pytest.raises(StoreError, match="there is no message"):
        there.adopt(here.copy_of(task))
    assert there.sessions() == []
    there.adopt(here.copy_of(session))
    assert there.task(AskedBy(reply.id, 0)) == there.session(task)
    assert there.session(task).task_of == session


def test_a_reply_that_still_grows_stays_until_it_is_whole(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    (asked,) = say(here, session, "well?")
    reply = here.begin_reply(session, OFFLINE)
    here.grow_reply(reply, "hm")
    there.adopt(here.copy_of(session))
    assert there.branch(session) == [asked]
    here.seal_reply(reply, Message("assistant", "hm."))
    there.adopt(here.copy_of(session))
    assert [message.text for message in there.branch(session)] == ["well?", "hm."]


@into_each
def test_a_copy_with_a_gap_leaves_nothing(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    say(here, session, "a", "b", "c")
    copy = here.copy_of(session)
    with pytest.raises(StoreError, match="there is no message"):
        there.adopt(replace(copy, messages=[copy.messages[0], copy.messages[2]]))
    with pytest.raises(SessionNotFound):
        there.session(session)
    assert there.missing([copy.messages[0].message.id]) == [copy.messages[0].message.id]


@into_each
def test_a_session_that_is_open_elsewhere_takes_nothing_in(here: SessionStore, place: Place) -> None:
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


@into_each
def test_messages_that_are_missing_are_named_in_order(store: SessionStore) -> None:
    session = new_session(store).id
    (said,) = say(store, session, "a")
    others = [new_id(), "m1", new_id()]
    assert store.missing([others[0], said.id, *others[1:]]) == others
    assert store.missing([]) == []


@into_each
def test_summaries_of_both_sides_are_kept(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    say(here, session, "a")
    there.adopt(here.copy_of(session))
    for store in (here, there):
        (said,) = say(store, session, "b")
        store.publish_summary(session, StoredSummary(f"until {said.id}", said.id), expected=0)
        ahead = StoredSummary("and more", said.id, made_from=1)
        store.publish_summary(session, ahead, expected=1)
    for _ in range(2):
        here.adopt(there.copy_of(session))
        there.adopt(here.copy_of(session))
    for store, other in ((here, there), (there, here)):
        texts = {summary.text for summary in store.summaries(session)}
        assert len(texts) == 3
        assert texts == {summary.text for summary in other.summaries(session)}
        made_from = {one.generation: one.made_from for one in store.summaries(session)}
        assert made_from == {1: 0, 2: 1, 3: 0, 4: 3}
        newest = store.summary(session)
        assert newest is not None
        assert newest.through == store.session(session).head


def test_texts_of_any_kind_arrive_as_they_are(here: SessionStore, there: SessionStore) -> None:
    odd = "\x00 \ud800 \x1a \x1a0000 \\u0000 \u2028 \U0001f980 ' \" %(x)s"
    session = here.create_session(folder=f"/{odd}", model=odd, rolling=False, api_base=odd).id
    extras = {odd: odd}
    call = ToolCall(odd, odd, odd)
    here.append(session, Message("assistant", odd, tool_calls=(call,), extras=extras))
    here.append(session, Message("tool", odd, tool_call_id=odd, name=odd), [FileTouch(odd, "read", "1" * 64)])
    here.update_session(session, notes={"x": odd}, plan={odd: odd}, title="x")
    there.adopt(here.copy_of(session))
    assert there.copy_of(session) == here.copy_of(session)
    assert there.session(session) == here.session(session)


@into_each
def test_a_message_that_is_there_stays_as_it_is(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    (said,) = say(here, session, "as it was said")
    there.adopt(here.copy_of(session))
    copy = here.copy_of(session)
    other = replace(copy.messages[0], message=Message("user", "forged", id=said.id))
    there.adopt(replace(copy, messages=[other], info=replace(copy.info, updated_at=copy.info.updated_at + 1)))
    assert there.branch(session) == [said]


@into_each
def test_what_is_no_id_is_refused(here: SessionStore, there: SessionStore) -> None:
    session = new_session(here).id
    say(here, session, "a")
    copy = here.copy_of(session)
    for one in ("", "m1", "x" * 36, "0" * 36, "\x00"):
        placed = replace(copy.messages[0], message=replace(copy.messages[0].message, id=one))
        for forged in (replace(copy, info=replace(copy.info, id=one)), replace(copy, messages=[placed])):
            with pytest.raises(StoreError, match="is no id"):
                there.adopt(forged)
    assert there.sessions() == []


@into_each
def test_old_names_go_along(there: SessionStore, tmp_path: Path) -> None:
    old = open_store(None)
    session = new_session(old).id
    copy = old.copy_of(session)
    there.adopt(replace(copy, info=replace(copy.info, short="wcrnwmc2kd")))
    assert there.session("wcrn").id == session
    old.close()
