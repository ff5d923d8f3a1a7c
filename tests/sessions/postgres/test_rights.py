"""Whose sessions are whose: tried by logins that have no more rights than the roles give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from rolling_chat.messages import Message, picture_part
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.migrations import script
from rolling_chat.sessions.records import KeptChange, KeptVersion, RequestRecord, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import Server, new_database
from tests.support.sessions import OFFLINE, new_session

ADA, BOB = "ada", "bob"
PICTURE = picture_part("data:image/png;base64,iVBORw0KGgo=")
Open = Callable[[str], SessionStore]


@pytest.fixture
def team(server: Server) -> str:
    """A database set up for several people, as the script of the roles says."""
    name = new_database(server, empty=True)
    server.sql(script("roles.sql"), name)
    for login in (ADA, BOB):
        server.sql(
            f"DO $$ BEGIN CREATE ROLE {login} LOGIN IN ROLE rolling_chat_member;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
            name,
        )
    open_store(server.url(name)).close()  # its owner makes the tables
    return name


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
        lambda: bob.fork(session),
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
