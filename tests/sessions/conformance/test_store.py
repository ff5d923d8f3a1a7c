"""Messages: stored before shown, in a tree that only grows, whatever the text."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable
from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rolling_chat.messages import Ending, MadeBy, Message, ToolCall
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.records import SessionAmbiguous, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session
from tests.support.stores import Place

# everything a str can hold, lone surrogates among it
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
CONTENT = ANY_TEXT | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": ANY_TEXT})).map(tuple)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=CONTENT,
    tool_calls=st.lists(st.builds(ToolCall, ANY_TEXT, ANY_TEXT, ANY_TEXT), max_size=3).map(tuple),
    tool_call_id=st.none() | ANY_TEXT,
    name=st.none() | ANY_TEXT,
    extras=st.none() | st.dictionaries(ANY_TEXT, JSON, min_size=1, max_size=3),
    made_by=st.none() | st.builds(MadeBy, ANY_TEXT, ANY_TEXT),
    ending=st.sampled_from(Ending),
    created_at=st.floats(1, 2e9),
)

NOBODYS = "01890000-0000-7000-8000-000000000000"


def in_one_store(test: Callable[..., None]) -> Callable[..., None]:
    """Run every example of a test in the same store, with a session of its own."""
    test = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])(test)
    # a pool of connections draws lots in its own thread while an example is made
    return pytest.mark.filterwarnings("ignore:Do not use the `random` module")(test)


def test_append_gives_the_message_an_id_and_a_time(store: SessionStore) -> None:
    session = new_session(store)
    first = store.append(session.id, Message("user", "why?"))
    second = store.append(session.id, Message("assistant", "because", created_at=5.0))
    assert first.id
    assert first.id != second.id
    assert first.created_at > 1e9
    assert second.created_at == 5.0
    assert store.branch(session.id) == [first, second]
    assert store.session(session.id).head == second.id


@given(messages=st.lists(MESSAGES, min_size=1, max_size=4))
@in_one_store
def test_every_message_comes_back_as_it_was(store: SessionStore, messages: list[Message]) -> None:
    session = new_session(store)
    stored = [store.append(session.id, message) for message in messages]
    read = store.branch(session.id)
    assert read == stored
    assert [message.content for message in read] == [message.content for message in messages]


@given(pieces=st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=8), final=ANY_TEXT)
@in_one_store
def test_a_growing_reply_shows_all_that_was_written(
    store: SessionStore, pieces: list[tuple[str, str]], final: str
) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    for text, reasoning in pieces:
        store.grow_reply(reply, text, reasoning)
    text, reasoning = ("".join(parts) for parts in zip(*pieces, strict=True)) if pieces else ("", "")
    (growing,) = store.branch(session.id)
    assert growing.text == text
    assert (growing.extras or {}).get("reasoning_content", "") == reasoning

    sealed = store.seal_reply(reply, Message("assistant", final))
    assert store.branch(session.id) == [sealed]
    assert sealed.text == (final or text)
    assert (sealed.extras or {}).get("reasoning_content", "") == reasoning


def test_a_sealed_reply_is_what_the_provider_said_at_last(store: SessionStore) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    store.grow_reply(reply, "The ans", reasoning="let me see")
    final = Message(
        "assistant",
        "The answer.",
        tool_calls=(ToolCall("c1", "read_file", "{}"),),
        extras={"thinking_blocks": [{"signature": "x"}]},
    )
    sealed = store.seal_reply(reply, final)
    assert sealed.id == reply
    assert (sealed.text, sealed.tool_calls, sealed.ending) == (
        "The answer.",
        final.tool_calls,
        Ending.COMPLETE,
    )
    # signed thinking is the provider's own: nothing is put beside it
    assert sealed.extras == final.extras
    assert sealed.made_by == OFFLINE
    assert store.branch(session.id) == [sealed]


def test_a_reply_is_marked_cut_off_until_it_is_sealed(store: SessionStore) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    store.grow_reply(reply, "half a sen")
    (growing,) = store.branch(session.id)
    assert growing.ending is Ending.CANCELLED
    assert growing.id == reply == store.session(session.id).head


def test_closing_seals_what_was_being_written(place: Place) -> None:
    store = place.open()
    session = new_session(store)
    store.grow_reply(store.begin_reply(session.id, OFFLINE), "half")
    store.close()
    again = place.open()
    (message,) = again.branch(session.id)
    assert (message.text, message.ending) == ("half", Ending.CANCELLED)
    again.append(session.id, Message("user", "go on"))
    again.close()
    assert place.faults() == []


def test_a_reply_that_never_got_a_byte_leaves_no_trace(store: SessionStore) -> None:
    session = new_session(store)
    asked = store.append(session.id, Message("user", "hello?"))
    store.drop_reply(store.begin_reply(session.id, OFFLINE))
    assert store.branch(session.id) == [asked]
    assert store.session(session.id).head == asked.id


def test_dropping_a_reply_that_was_shown_or_answered_keeps_it(store: SessionStore) -> None:
    session = new_session(store)
    shown = store.begin_reply(session.id, OFFLINE)
    store.grow_reply(shown, "some")
    store.drop_reply(shown)
    answered = store.begin_reply(session.id, OFFLINE)
    store.append(session.id, Message("user", "from another terminal"))
    store.drop_reply(answered)
    texts = [(message.text, message.ending) for message in store.branch(session.id)]
    assert texts == [
        ("some", Ending.CANCELLED),
        ("", Ending.CANCELLED),
        ("from another terminal", Ending.COMPLETE),
    ]


def test_a_closed_reply_cannot_be_changed(store: SessionStore) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    store.seal_reply(reply, Message("assistant", "done"))
    for change in (
        lambda: store.grow_reply(reply, "more"),
        lambda: store.seal_reply(reply, Message("assistant", "other")),
        lambda: store.drop_reply(reply),
    ):
        with pytest.raises(StoreError, match="is closed"):
            change()
    assert store.branch(session.id)[0].text == "done"


def test_moving_the_head_back_loses_nothing(store: SessionStore) -> None:
    session = new_session(store)
    first = store.append(session.id, Message("user", "one"))
    second = store.append(session.id, Message("assistant", "two"))
    store.update_session(session.id, head=first.id)
    other = store.append(session.id, Message("assistant", "another two"))
    assert store.branch(session.id) == [first, other]
    assert store.branch(session.id, second.id) == [first, second]
    assert store.update_session(session.id, head="").messages == 0
    assert store.branch(session.id) == []
    assert store.branch(session.id, other.id) == [first, other]


def test_counts_are_kept_with_the_message(store: SessionStore) -> None:
    session = new_session(store)
    message = store.append(session.id, Message("user", "one"))
    store.append(session.id, Message("assistant", "two"))
    store.save_counts({message.id: {"o200k_base": 7}})
    assert store.stretch(session.id, 5).counts == {message.id: {"o200k_base": 7}}


def test_counts_of_a_reply_that_still_grew_are_gone_once_it_is_sealed(store: SessionStore) -> None:
    session = new_session(store)
    reply = store.begin_reply(session.id, OFFLINE)
    store.save_counts({reply: {"o200k_base": 1}})
    store.seal_reply(reply, Message("assistant", "The answer."))
    assert store.stretch(session.id, 5).counts == {}


def test_a_title_is_made_of_the_first_thing_the_person_said(store: SessionStore) -> None:
    session = new_session(store)
    store.append(session.id, Message("system", "You are helpful"))
    store.append(session.id, Message("user", f"\n  fix\tthe \x1b[31mparser {'x' * 80}\nplease"))
    store.append(session.id, Message("user", "thanks"))
    info = store.session(session.id)
    assert info.title.startswith("fix the ␛[31mparser xxx")
    assert len(info.title) == 60
    assert not info.title_given


def test_a_given_title_is_never_overwritten(store: SessionStore) -> None:
    session = new_session(store, title="mine")
    store.append(session.id, Message("user", "something else"))
    assert (store.session(session.id).title, store.session(session.id).title_given) == ("mine", True)
    emptied = store.update_session(session.id, title="")
    store.append(session.id, Message("user", "something else"))
    assert (emptied.title, store.session(session.id).title) == ("", "")


def test_sessions_are_listed_newest_first_without_empty_ones(store: SessionStore) -> None:
    old, new, elsewhere = new_session(store), new_session(store), new_session(store, folder="/other")
    new_session(store)
    for session in (old, new, elsewhere):
        store.append(session.id, Message("user", "hi"))
    assert [info.id for info in store.sessions()] == [elsewhere.id, new.id, old.id]
    store.append(old.id, Message("assistant", "hello"))
    newest = store.newest("/work")
    assert newest is not None
    assert (newest.id, newest.messages) == (old.id, 2)
    assert [info.id for info in store.sessions("/work", limit=1)] == [old.id]
    assert store.newest("/nowhere") is None


def test_ids_are_the_same_everywhere_and_in_the_order_they_were_made(store: SessionStore) -> None:
    session = new_session(store)
    said = [store.append(session.id, Message("user", f"{n}")).id for n in range(50)]
    for made in (session.id, *said):
        assert uuid.UUID(made).version == 7
        assert str(uuid.UUID(made)) == made
    assert [session.id, *said] == sorted({session.id, *said})


def test_a_session_goes_by_the_end_of_its_id(store: SessionStore) -> None:
    sessions = [new_session(store) for _ in range(40)]
    for session in sessions:
        assert session.short == session.id[-8:]
        for name in (session.short, session.short[:7], session.id[-7:], session.id[-11:], session.id):
            assert store.session(f" {name.upper()} ").id == session.id
    by_digit = Counter(session.short[0] for session in sessions)
    shared = next(digit for digit, count in by_digit.items() if count > 1)  # 16 digits, 40 sessions
    with pytest.raises(SessionAmbiguous, match=f"several sessions match '{shared}'") as caught:
        store.session(shared)
    assert "-" not in str(caught.value)


def test_what_sessions_of_one_time_share_names_none_of_them(store: SessionStore) -> None:
    first, second = new_session(store, title="one"), new_session(store, title="two")
    pairs = zip(first.id, second.id, strict=True)
    shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    with pytest.raises(SessionAmbiguous) as caught:
        store.session(shared)
    assert f"{second.short} (two), {first.short} (one)" in str(caught.value)
    assert store.session(first.id[: len(shared) + 1]).id == first.id


def test_a_session_may_be_given_the_id_that_it_has_elsewhere(store: SessionStore) -> None:
    given = new_id()
    info = store.create_session(folder="/w", model="m", rolling=False, id=given)
    assert (info.id, info.short) == (given, given[-8:])
    for taken in (given, "nonsense", given.upper()):
        with pytest.raises(StoreError, match="is no id for a new session"):
            store.create_session(folder="/w", model="m", rolling=False, id=taken)


@pytest.mark.parametrize(
    "wanted", ["", "   ", "zzzzzzzzzzzz", "%", "_", "-x", "a\x00b", "\ud800", "x" * 10_000]
)
def test_what_is_no_session_says_what_there_is(store: SessionStore, wanted: str) -> None:
    session = new_session(store, title="the one")
    store.append(session.id, Message("user", "hi"))
    with pytest.raises(SessionNotFound) as caught:
        store.session(wanted)
    line = str(caught.value)
    assert f"{session.short} (the one)" in line
    assert line.isprintable()
    assert len(line) < 200


@pytest.mark.parametrize("id", ["", "m", "m1", "x' OR 1=1", "01٢", "0" * 36, NOBODYS, "\ud800"])
def test_an_id_that_is_none_is_a_store_error(store: SessionStore, id: str) -> None:
    session = new_session(store)
    store.append(session.id, Message("user", "hi"))
    with pytest.raises(StoreError):
        store.grow_reply(id, "text")
    if id:
        with pytest.raises(StoreError):
            store.branch(session.id, id)
    with pytest.raises(SessionNotFound):
        store.append(id, Message("user", "hi"))


def test_the_pipelines_state_is_kept(store: SessionStore) -> None:
    session = new_session(store)
    message = store.append(session.id, Message("user", "hi"))
    plan = {"masked": [1], "low": 0.6}
    info = store.update_session(
        session.id,
        model="openai/x",
        rolling=True,
        pins=(message.id,),
        excluded=[message.id, NOBODYS],
        plan=plan,
    )
    assert (info.model, info.rolling) == ("openai/x", True)
    state = store.state(session.id)
    assert (state.pins, state.excluded, state.plan) == ((message.id,), (message.id, NOBODYS), plan)


def test_a_fork_shares_the_branch_and_goes_its_own_way(store: SessionStore) -> None:
    session = new_session(store)
    shared = [store.append(session.id, Message("user", f"{n}")) for n in range(3)]
    store.update_session(session.id, rolling=True, pins=(shared[0].id,), excluded=(shared[1].id,))
    fork = store.fork(session.id)
    assert (fork.parent, fork.title, fork.rolling, fork.messages) == (session.id, "0", True, 3)
    assert store.state(fork.id).pins == (shared[0].id,)
    assert store.state(fork.id).excluded == (shared[1].id,)
    own = store.append(fork.id, Message("user", "fork"))
    other = store.append(session.id, Message("user", "original"))
    assert store.branch(fork.id) == [*shared, own]
    assert store.branch(session.id) == [*shared, other]


def test_a_fork_of_a_session_in_mid_answer_ends_before_the_answer(store: SessionStore) -> None:
    session = new_session(store)
    asked = store.append(session.id, Message("user", "well?"))
    reply = store.begin_reply(session.id, OFFLINE)
    store.grow_reply(reply, "hm")
    fork = store.fork(session.id)
    assert store.branch(fork.id) == [asked]
    store.seal_reply(reply, Message("assistant", "hm."))
    assert store.fork(session.id).messages == 2


def test_deleting_a_session_never_harms_another(place: Place) -> None:
    store = place.open()
    session = new_session(store)
    messages = [store.append(session.id, Message("user", f"word{n}")) for n in range(6)]
    store.update_session(session.id, head=messages[3].id)
    short = store.fork(session.id)
    short_end = store.append(short.id, Message("user", "short"))
    grandchild = store.fork(short.id)
    grandchild_end = store.append(grandchild.id, Message("user", "grandchild"))
    # a fork that has gone back can still come forward again
    store.update_session(grandchild.id, head=messages[0].id)

    store.delete(session.id)
    assert store.branch(short.id) == [*messages[:4], short_end]
    store.delete(short.id)
    assert store.branch(grandchild.id, grandchild_end.id) == [*messages[:4], short_end, grandchild_end]
    assert [hit.message_id for hit in store.search("word2")] == [messages[2].id]
    assert store.search("word5") == []
    with pytest.raises(SessionNotFound):
        store.session(session.id)
    store.delete(grandchild.id)
    store.close()
    assert place.faults() == []


def test_a_fork_can_return_to_where_it_was_forked(store: SessionStore) -> None:
    session = new_session(store)
    messages = [store.append(session.id, Message("user", f"{n}")) for n in range(4)]
    fork = store.fork(session.id)
    store.update_session(fork.id, head=messages[1].id)
    store.delete(session.id)
    assert store.update_session(fork.id, head=messages[3].id).messages == 4
    assert store.branch(fork.id) == messages


def test_the_id_of_a_deleted_message_is_never_given_again(store: SessionStore) -> None:
    session = new_session(store)
    gone = store.append(session.id, Message("user", "x"))
    store.delete(session.id)
    later = new_session(store)
    assert store.append(later.id, Message("user", "y")).id != gone.id


def test_a_long_session_is_read_whole(store: SessionStore) -> None:
    session = new_session(store)
    store.append_all(session.id, [Message("user", f"message {n}") for n in range(3_000)])
    assert [message.text for message in store.branch(session.id)] == [f"message {n}" for n in range(3_000)]
    assert store.session(session.id).messages == 3_000


def test_a_huge_result_is_kept_whole(store: SessionStore) -> None:
    session = new_session(store)
    text = "0123456789\n" * 1_000_000
    store.append(session.id, Message("tool", text, tool_call_id="c1"))
    assert store.branch(session.id)[0].content == text


def test_a_closed_store_says_so(store: SessionStore) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.sessions()


def test_times_that_are_no_numbers_are_replaced(store: SessionStore) -> None:
    session = new_session(store)
    message = store.append(session.id, Message("user", "x", created_at=math.nan))
    assert message.created_at > 1e9
    assert store.branch(session.id) == [message]
