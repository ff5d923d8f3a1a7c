"""What files held before and after tools changed them."""

from __future__ import annotations

import hashlib

from rolling_chat.messages import Message
from rolling_chat.sessions.records import KeptChange, KeptVersion
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import new_session


def version(data: bytes, mode: int | None = 0o644) -> KeptVersion:
    return KeptVersion(hashlib.sha256(data).hexdigest(), mode)


def test_the_changes_of_a_branch_come_back_in_order_with_what_the_files_held(store: SessionStore) -> None:
    session = new_session(store).id
    asked = store.append(session, Message("user", "go"))
    reply = store.append(session, Message("assistant", "edited"))
    assert not store.kept_files.has_any()
    made = KeptChange(reply.id, "/w/\udcff.txt", None, version(b"new", None), ("/w",))
    link = KeptChange(reply.id, "/w/b", KeptVersion(version(b"a").sha256, None, is_link=True), version(b"b"))
    store.kept_files.keep([made, link], [b"new", b"a", b"b"])
    store.kept_files.keep_mode(made.path, version(b"new").sha256, 0o600)
    first, second = store.kept_files.of_branch(reply.id)
    assert (first.path, first.before, first.after) == (made.path, None, version(b"new", 0o600))
    assert (first.folders, first.first, second.first) == (("/w",), first.number, first.number)
    assert (second.message_id, second.before, second.after) == (reply.id, link.before, link.after)
    assert store.kept_files.content(version(b"new").sha256) == b"new"
    assert store.kept_files.newest_paths(1) == ["/w/b"]
    assert store.kept_files.size() > 0
    assert store.kept_files.of_branch(asked.id) == store.kept_files.of_branch("") == []


def test_a_change_that_was_not_made_is_dropped(store: SessionStore) -> None:
    session = new_session(store).id
    reply = store.append(session, Message("assistant", "edited"))
    one, two = (KeptChange(reply.id, "/w/a", None, version(data)) for data in (b"1", b"2"))
    store.kept_files.keep([one], [b"1"])
    store.kept_files.keep([two], [b"2"])
    store.kept_files.drop([two])
    (left,) = store.kept_files.of_branch(reply.id)
    assert left.after == one.after


def test_they_go_with_their_session(store: SessionStore) -> None:
    session = new_session(store).id
    reply = store.append(session, Message("assistant", "edited"))
    store.kept_files.keep([KeptChange(reply.id, "/w/a", None, version(b"1"))], [b"1"])
    store.delete(session)
    assert store.kept_files.content(version(b"1").sha256) is None
    assert not store.kept_files.has_any()
