"""A branch read in parts, from its newest message up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.sessions.records import RequestRecord, Stretch
from rolling_chat.sessions.store import SessionStore
from tests.sessions.conformance.test_store import in_one_store
from tests.support.sessions import new_session


def turn(results: int) -> list[Message]:
    made = tuple(ToolCall(f"c{n}", "look", "{}") for n in range(results))
    answers = (Message("tool", f"found {n}", tool_call_id=f"c{n}") for n in range(results))
    return [Message("user", "go"), Message("assistant", "so", tool_calls=made), *answers]


def parts_of(store: SessionStore, session: str, most: int) -> list[list[Message]]:
    """The branch part by part, the newest first."""
    parts, head = [], None
    while head is None or head:
        messages, head, *_ = store.stretch(session, most, head)
        parts.append(messages)
    return parts


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 9))
@in_one_store
def test_the_parts_of_a_branch_make_the_whole_and_none_begins_with_a_result(
    store: SessionStore, turns: list[int], most: int
) -> None:
    session = new_session(store).id
    store.append_all(session, [message for results in turns for message in turn(results)])
    parts = parts_of(store, session, most)
    assert [message for part in reversed(parts) for message in part] == store.branch(session)
    assert all(part[0].role != "tool" for part in parts)
    assert all(len(part) <= most + 5 for part in parts)


def test_a_result_without_a_call_begins_the_branch_that_begins_with_it(store: SessionStore) -> None:
    session = new_session(store).id
    store.append_all(session, [Message("tool", "lost", tool_call_id="x"), Message("user", "hi")])
    assert [len(part) for part in parts_of(store, session, 1)] == [1, 1]


def test_an_empty_session_has_one_empty_part(store: SessionStore) -> None:
    assert store.stretch(new_session(store).id, 5) == Stretch([], "", {}, 0)


def test_the_usage_of_a_session_is_that_of_all_its_requests(store: SessionStore) -> None:
    session = new_session(store).id
    assert store.usage(session) == Usage()
    for usage in (Usage(1, 2, 3, 4, 5), Usage(10, 20, cost=0.5), Usage(100, cost=0.25)):
        record = RequestRecord("", session, "", "m", None, "", 1, "", 0, 0)
        store.finish_request(store.log_request(record), usage=usage, seconds=1.0)
    assert store.usage(session) == Usage(111, 22, 3, 4, 5, 0.75)
    assert store.usage(session) == sum((one.usage for one in store.requests(session)), Usage())
