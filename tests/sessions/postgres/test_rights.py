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
