"""Which files a session read and wrote, and what was in them."""

from __future__ import annotations

from rolling_chat.messages import FileTouch, Message
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import new_session

READ = FileTouch("/work/a.txt", "read", "ab" * 32)
ODD = FileTouch("/work/\udcff.txt", "written", "")


def test_files_come_back_in_order_with_the_message_that_touched_them(store: SessionStore) -> None:
    session = new_session(store).id
    first = store.append(session, Message("tool", "text"), [READ])
    second = store.append(session, Message("tool", "text"), [ODD, READ])
    assert [(use.touch, use.message_id) for use in store.files(session)] == [
        (READ, first.id), (ODD, second.id), (READ, second.id),
    ]  # fmt: skip
    assert store.files(session)[0].at == first.created_at


def test_a_fork_has_what_it_shares_and_another_session_has_nothing(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("tool", "text"), [READ])
    fork = store.fork(session).id
    store.append(fork, Message("tool", "more"), [ODD])
    assert [use.touch for use in store.files(fork)] == [READ, ODD]
    assert [use.touch for use in store.files(session)] == [READ]
    assert store.files(new_session(store).id) == []


def test_what_was_read_on_a_branch_that_was_left_is_still_the_sessions(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("tool", "text"), [READ])
    store.update_session(session, head="")
    assert [use.touch for use in store.files(session)] == [READ]


def test_a_branch_knows_what_it_last_read_or_wrote_of_a_file_and_no_other_branch_does(
    store: SessionStore,
) -> None:
    path, session = READ.path, new_session(store).id
    first = store.append(session, Message("tool", "text"), [READ])
    listed = store.append(session, Message("tool", "text"), [FileTouch(path, "read in part", "cd" * 32)])
    written = store.append(session, Message("tool", "text"), [FileTouch(path, "written", "ef" * 32), ODD])
    store.append(new_session(store).id, Message("tool", "text"), [FileTouch(path, "read", "01" * 32)])
    assert store.last_known(path, written.id) == "ef" * 32
    assert store.last_known(path, listed.id) == store.last_known(path, first.id) == READ.sha256
    assert store.last_known(ODD.path, written.id) == ""
    assert store.last_known(ODD.path, listed.id) is None
    assert store.last_known(path, "") is None
    assert store.last_known(path, store.append(store.fork(session).id, Message("user", "on")).id) == "ef" * 32


def test_they_go_with_their_session(store: SessionStore) -> None:
    session, other = new_session(store).id, new_session(store).id
    store.append(session, Message("tool", "text"), [READ])
    store.append(other, Message("tool", "text"), [ODD])
    store.delete(session)
    assert [use.touch for use in store.files(other)] == [ODD]
