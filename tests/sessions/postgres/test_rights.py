"""Whose sessions are whose: tried by logins that have no more rights than the roles give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from rolling_chat.messages import FileTouch, Message, picture_part
from rolling_chat.sessions.ids import new_id
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import (
    KeptChange,
    KeptVersion,
    PlacedMessage,
    RequestRecord,
    SessionNotFound,
    StoredSummary,
    StoreError,
)
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import Server, new_database, new_team
from tests.support.sessions import OFFLINE, new_session

ADA, BOB = "ada", "bob"
PICTURE = picture_part("data:image/png;base64,iVBORw0KGgo=")
Open = Callable[[str], SessionStore]


@pytest.fixture
def team(server: Server) -> str:
    """A database set up for several people, as the script of the roles says."""
    return new_team(server, ADA, BOB)


@pytest.fixture
def open_as(server: Server, team: str) -> Iterator[Open]:
    opened: list[SessionStore] = []

    def as_login(login: str) -> SessionStore:
        opened.append(open_store(server.url(team, login)))
        return opened[-1]

    yield as_login
    for store in opened:
        store.close()


def secret_session(store: SessionStore) -> str:
    """A session with something in every table."""
    session = new_session(store, title="salaries").id
    store.claim(session)
    asked = store.append(session, Message("user", ({"type": "text", "text": "zebra secret"}, PICTURE)))
    reply = store.append(session, Message("assistant", "zebra answer"))
    version = KeptVersion("a" * 64)
    store.kept_files.keep([KeptChange(reply.id, "/w/salaries", None, version)], [b"content"])
    store.log_request(
        RequestRecord("", session, asked.id, "m", None, "digest", 1, "h", 1, 1), {"system": "zebra"}
    )
    store.models.keep_measured("m", "", {"seen": 1})
    store.grow_reply(store.begin_reply(session, OFFLINE), "zebra half")
    return session


def test_nobody_sees_anything_of_another_ones_session(open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = secret_session(ada)
    messages = ada.branch(session)
    assert bob.sessions() == []
    assert bob.search("zebra") == []
    assert bob.cost_since(0.0) == 0.0
    assert bob.usage_rows("model") == []
    assert bob.basis("digest") is None
    assert bob.models.measured("m", "") is None
    assert not bob.kept_files.has_any()
    for attempt in (
        lambda: bob.session(session),
        lambda: bob.session(session[:6]),
        lambda: bob.branch(session),
        lambda: bob.branch(session, messages[0].id),
        lambda: bob.stretch(session, None),
        lambda: bob.search("zebra", session),
        lambda: bob.claim(session),
        lambda: bob.append(session, Message("user", "mine now")),
        lambda: bob.update_session(session, title="mine now"),
        lambda: bob.fork(session),
        lambda: bob.delete(session),
        lambda: bob.requests(session),
        lambda: bob.summaries(session),
    ):
        with pytest.raises(SessionNotFound):
            attempt()
    with pytest.raises(StoreError, match="is closed"):
        bob.grow_reply(messages[-1].id, "mine now")
    own = new_session(bob).id
    with pytest.raises(StoreError):
        bob.branch(own, messages[0].id)
    with pytest.raises(StoreError):
        bob.update_session(own, head=messages[0].id)
    assert ada.branch(session) == messages
    assert ada.session(session).title == "salaries"


def test_not_even_by_statements_of_ones_own(server: Server, team: str, open_as: Open) -> None:
    secret_session(open_as(ADA))
    with closing(psycopg.connect(server.url(team, BOB), autocommit=True)) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'rolling_chat' AND tablename <> 'version'"
        ).fetchall()
        assert len(tables) > 15
        for (table,) in tables:
            count = connection.execute(f"SELECT count(*) FROM rolling_chat.{table}").fetchone()
            assert count == (0,), table
            deleted = connection.execute(f"DELETE FROM rolling_chat.{table}")
            assert deleted.rowcount == 0, table
        for attempt in (
            "UPDATE rolling_chat.session SET owner = 'bob'",
            "INSERT INTO rolling_chat.session (id, owner, title) VALUES ('x', 'ada', '')",
            "INSERT INTO rolling_chat.share VALUES (1, 'ada', 'bob', true)",
            "INSERT INTO rolling_chat.share VALUES (1, 'bob', 'bob', true)",
            "ALTER TABLE rolling_chat.session DISABLE ROW LEVEL SECURITY",
            "DROP TABLE rolling_chat.message CASCADE",
            "CREATE TABLE rolling_chat.mine (x int)",
            "UPDATE rolling_chat.version SET number = 0",
            "SET ROLE rolling_chat_owner",
            "SET SESSION AUTHORIZATION ada",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(attempt)


def test_a_login_that_may_not_make_tables_says_who_may(server: Server, open_as: Open) -> None:
    empty = new_database(server, empty=True)
    with pytest.raises(StoreError, match="have its owner open it first"):
        open_store(server.url(empty, BOB))


def test_a_shared_session_is_read_until_that_is_ended_and_never_written(open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = secret_session(ada)
    ada.share(session, BOB, may_write=False)
    assert ada.shared_with(session) == {BOB: False}
    assert bob.branch(session) == ada.branch(session)  # its picture, and the reply that still grows, too
    assert [info.id for info in bob.sessions()] == [session]
    assert bob.search("zebra answer")[0].session_id == session
    assert bob.basis("digest") == {"system": "zebra"}
    assert bob.claim(session) is not None  # followed
    ada.release(session)
    assert bob.claim(session) is not None  # nobody has it open, and still it is not his to write
    for attempt in (
        lambda: bob.append(session, Message("user", "mine now")),
        lambda: bob.update_session(session, title="mine now"),
        lambda: bob.move_head(session, "", "m"),
        lambda: bob.delete(session),
        lambda: bob.share(session, ADA, may_write=True),
    ):
        with pytest.raises(StoreError, match=r"reading only|somebody else"):
            attempt()
    ada.share(session, BOB, may_write=None)
    with pytest.raises(SessionNotFound):
        bob.branch(session)
    assert bob.search("zebra") == []


def test_who_may_write_adds_to_a_session_and_takes_nothing_away(
    server: Server, team: str, open_as: Open
) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = secret_session(ada)
    ada.release(session)
    before = ada.branch(session)
    ada.share(session, BOB, may_write=True)
    assert bob.claim(session) is None
    added = bob.append(session, Message("user", ({"type": "text", "text": "by bob"}, PICTURE)))
    reply = bob.begin_reply(session, OFFLINE)
    bob.grow_reply(reply, "an answer")
    sealed = bob.seal_reply(reply, Message("assistant", "an answer"))
    assert ada.branch(session) == [*before, added, sealed]
    with pytest.raises(StoreError, match="is open in another terminal"):
        ada.append(session, Message("user", "at once"))
    with pytest.raises(StoreError, match="who alone may delete it"):
        bob.delete(session)
    with closing(psycopg.connect(server.url(team, BOB), autocommit=True)) as connection:
        for attempt in (
            "DELETE FROM rolling_chat.session",
            "DELETE FROM rolling_chat.message WHERE content LIKE 'zebra%'",
            "UPDATE rolling_chat.message SET content = 'never said' WHERE content = 'zebra answer'",
        ):
            assert connection.execute(attempt).rowcount == 0
        with pytest.raises(psycopg.Error):
            connection.execute("UPDATE rolling_chat.share SET owner = 'bob'")
    assert ada.branch(session)[: len(before)] == before


def test_nobody_invites_himself(server: Server, team: str, open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session, own = secret_session(ada), new_session(bob).id
    with pytest.raises(StoreError, match="no other login 'nobody-here'"):
        ada.share(session, "nobody-here", may_write=True)
    bob.share(own, ADA, may_write=True)
    number = server.sql(f"SELECT number FROM rolling_chat.session WHERE id = '{session}'", team).strip()
    message = server.sql("SELECT min(number) FROM rolling_chat.message", team).strip()
    with closing(psycopg.connect(server.url(team, BOB), autocommit=True)) as connection:
        for attempt in (
            f"UPDATE rolling_chat.share SET session = {number}, member = 'bob'",
            f"UPDATE rolling_chat.session SET head = {message}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(attempt)
        # nor by tables of his own that have the names of the policies'
        connection.execute("CREATE TEMP TABLE session AS SELECT * FROM rolling_chat.session")
        connection.execute(f"UPDATE session SET number = {number}, owner = 'ada'")
        connection.execute("SET search_path TO pg_temp, rolling_chat")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO rolling_chat.claim (session, owner, store, since)"
                f" SELECT {number}, 'ada', 'mine', 0 WHERE may_write({number}, 'bob') IS NOT NULL"
            )


def test_a_fork_of_a_shared_session_is_ones_own(open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = secret_session(ada)
    asked, answer = ada.branch(session)[:2]
    ada.publish_summary(session, StoredSummary("They asked.", asked.id), expected=0)
    ada.update_session(session, pins=[asked.id], notes={f"{answer.id}/1": "a note"}, plan={"seen": 2})
    before = ada.copy_of(session)
    ada.share(session, BOB, may_write=False)
    fork = bob.fork(session)
    own = bob.branch(fork.id)
    assert [replace(message, id="") for message in own] == [replace(asked, id=""), replace(answer, id="")]
    assert {asked.id, answer.id}.isdisjoint(message.id for message in own)
    assert (fork.parent, fork.title, fork.messages, fork.has_summary) == (session, "salaries", 2, True)
    state = bob.state(fork.id)
    assert (state.pins, state.plan) == ((own[0].id,), {"seen": 2})
    assert state.notes == {f"{own[1].id}/1": "a note"}
    assert bob.claim(fork.id) is None
    bob.append(fork.id, Message("user", "and I say"))
    ada.release(session)
    assert ada.copy_of(session) == before
    assert [info.id for info in ada.sessions()] == [session]
    ada.share(session, BOB, may_write=None)
    ada.delete(session)
    assert [message.text for message in bob.branch(fork.id)][1:] == ["zebra answer", "and I say"]
    assert bob.branch(fork.id)[0] == own[0]  # its picture, too


def test_a_copy_from_elsewhere_takes_nothing_over(open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = secret_session(ada)
    ada.release(session)
    copy = ada.copy_of(session)
    later = copy.info.updated_at + 1
    more = PlacedMessage(Message("user", "mine now", id=new_id()), copy.messages[-1].message.id, session)
    gone_on = replace(
        copy,
        info=replace(copy.info, title="mine now", updated_at=later, head=more.message.id),
        messages=[*copy.messages, more],
    )
    # sessions of his own that stand on what she said
    renamed = replace(copy, info=replace(copy.info, id=new_id()))
    below = replace(renamed, messages=[more], info=replace(renamed.info, head=more.message.id))
    at_it = replace(renamed, messages=[])
    for may_write in (None, False):
        ada.share(session, BOB, may_write=may_write)
        for forged in (gone_on, renamed, below, at_it):
            with pytest.raises(StoreError, match=r"somebody else's|there is no message"):
                bob.adopt(forged)
    ada.share(session, BOB, may_write=None)
    assert bob.sessions() == []
    assert ada.copy_of(session) == copy
    ada.share(session, BOB, may_write=True)
    assert bob.adopt(gone_on).title == "mine now"
    assert ada.branch(session)[:-1] == [placed.message for placed in copy.messages]
    assert ada.branch(session)[-1].text == "mine now"


def test_no_key_goes_to_an_address_that_somebody_else_chose(server: Server, team: str, open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    session = new_session(ada).id
    ada.append(session, Message("user", "hello"))
    ada.update_session(session, api_base="http://hers")
    ada.share(session, BOB, may_write=True)
    assert ada.session(session).api_base == "http://hers"
    assert bob.session(session).api_base is None  # it is asked for
    assert bob.session(bob.fork(session).id).api_base is None
    assert bob.copy_of(session).info.api_base is None
    bob.update_session(session, api_base="http://his")
    with closing(psycopg.connect(server.url(team, BOB), autocommit=True)) as connection:
        connection.execute("UPDATE rolling_chat.session SET api_base = 'http://his'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE rolling_chat.session SET api_base_by = 'ada'")
    fork = ada.fork(session).id
    later = replace(ada.copy_of(session).info, updated_at=1e12)
    for known in (
        ada.session(session),
        ada.session(fork),
        ada.adopt(replace(ada.copy_of(session), info=later)),
    ):
        assert known.api_base is None
    assert bob.session(session).api_base == "http://his"
    assert ada.update_session(session, api_base="http://his").api_base == "http://his"
    ada.update_session(session, api_base="")
    assert bob.session(session).api_base == ""


def test_a_shared_fork_is_read_whole_and_its_origin_is_not(server: Server, team: str, open_as: Open) -> None:
    ada, bob = open_as(ADA), open_as(BOB)
    origin = new_session(ada).id
    ada.append(
        origin, Message("user", ({"type": "text", "text": "before"}, PICTURE)), [FileTouch("/a", "read", "1")]
    )
    fork = ada.fork(origin).id
    ada.append(origin, Message("user", "behind it"))
    ada.append(fork, Message("user", "in the fork"))
    unspoken = ada.fork(origin).id
    ada.share(fork, BOB, may_write=True)
    assert bob.branch(fork) == ada.branch(fork)
    assert [message.text for message in bob.stretch(fork, 1).messages] == ["in the fork"]
    assert bob.files(fork) == ada.files(fork)
    assert [message.text for message in bob.branch(bob.fork(fork).id)] == ["before", "in the fork"]
    bob.append(fork, Message("user", "by bob"))
    assert ada.branch(fork)[-1].text == "by bob"
    for attempt in (
        lambda: bob.branch(origin),
        lambda: bob.branch(fork, ada.session(origin).head),
        lambda: bob.branch(unspoken),
    ):
        with pytest.raises(StoreError):
            attempt()
    with closing(psycopg.connect(server.url(team, BOB), autocommit=True)) as connection:
        stolen = (
            "INSERT INTO rolling_chat.lent (session, message) SELECT session, message FROM rolling_chat.lent"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(stolen)
    ada.share(fork, BOB, may_write=None)
    with pytest.raises(SessionNotFound):
        bob.branch(fork)
    with pytest.raises(StoreError):
        bob.branch(new_session(bob).id, ada.branch(fork)[0].id)
