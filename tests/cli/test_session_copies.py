"""`rolling-chat sessions push` and `pull`: the sessions of this machine, and those of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rolling_chat.messages import Message, ToolCall
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import AskedBy
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import new_database, shared_server
from tests.support.program import Program, Ran
from tests.support.sessions import OFFLINE, new_session

Run = Callable[..., Ran]


@pytest.fixture
def address() -> str:
    server = shared_server()
    return server.url(new_database(server))


@pytest.fixture
def run(program: Program, address: str) -> Run:
    """The program with its sessions in the database."""
    return lambda *argv: program("-c", f"sessions.store={address}", *argv)


@contextmanager
def opened(where: object) -> Iterator[SessionStore]:
    store = open_store(str(where))
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def local(program: Program) -> str:
    return str(program.home / "rolling-chat" / "sessions.db")


def say(where: str, session: str, *texts: str) -> None:
    with opened(where) as store:
        for text in texts:
            store.append(session, Message("user", text))


def make(where: str, *texts: str) -> str:
    with opened(where) as store:
        session = new_session(store).id
    say(where, session, *texts)
    return session


def test_only_what_is_asked_for_goes_and_only_what_is_new(run: Run, local: str, address: str) -> None:
    first, second = make(local, "zebra"), make(local, "other", "words")
    assert "2 sessions stayed on this machine, all or in part: " in run("sessions", "list").out
    pushed = run("sessions", "push", first[-8:-2])
    assert pushed.out == f"{first[-8:]}  1 message pushed  zebra\n1 session: 1 pushed\n"
    assert "1 session stayed" in run("sessions", "list").out
    assert run("sessions", "push", "--all").out.splitlines() == [
        f"{first[-8:]}  up to date  zebra",
        f"{second[-8:]}  2 messages pushed  other",
        "2 sessions: 1 pushed, 1 up to date",
    ]
    assert "stayed" not in run("sessions", "list").out
    say(local, first, "and more")
    assert "1 session stayed" in run("sessions", "list").out
    assert f"{first[-8:]}  1 message pushed  zebra\n" in run("sessions", "push", "--all").out
    assert run("sessions", "search", "more").out.startswith(first[-8:])
    assert run("sessions", "push", first, first[-8:]).out.endswith("1 session: 1 up to date\n")


def test_what_was_said_elsewhere_comes_here(run: Run, program: Program, local: str, address: str) -> None:
    session = make(address, "zebra")
    assert (
        run("sessions", "pull", "--all").out
        == f"{session[-8:]}  1 message pulled  zebra\n1 session: 1 pulled\n"
    )
    say(address, session, "more")
    assert "1 message pulled" in run("sessions", "pull", session).out
    assert program("sessions", "export", session).out.count("more") == 1
    (row,) = run("sessions", "pull", "--all", "--json").json
    assert row == {
        "id": session,
        "short": session[-8:],
        "title": "zebra",
        "result": "up to date",
        "messages": 0,
    }


def test_of_two_sides_that_went_on_both_are_told_and_kept(run: Run, local: str, address: str) -> None:
    session = make(local, "start")
    run("sessions", "push", "--all")
    say(local, session, "here")
    say(address, session, "there", "and there")
    there_leads = "both sides had gone on: the database was last and leads, the other is a branch (/branches)"
    ran = run("sessions", "push", "--all")
    assert ran.out.splitlines() == [
        f"{session[-8:]}  1 message pushed; {there_leads}  start",
        "1 session: 1 pushed as branches",
    ]
    (row,) = run("sessions", "pull", "--all", "--json").json
    assert (row["result"], row["messages"]) == ("copied", 2)
    for where in (local, address):
        with opened(where) as store:
            assert [message.text for message in store.branch(session)] == ["start", "there", "and there"]
            (left,) = store.left_branches(session)
            assert store.branch(session, left.head)[-1].text == "here"
    assert run("sessions", "push", "--all").out.endswith("1 session: 1 up to date\n")


def test_a_new_title_goes_along_where_the_session_is_named(run: Run, local: str, address: str) -> None:
    session = make(local, "start")
    run("sessions", "push", "--all")
    with opened(local) as store:
        store.update_session(session, title="renamed", pins=[store.session(session).head])
    assert "up to date" in run("sessions", "push", "--all").out
    assert run("sessions", "push", session).out.startswith(
        f"{session[-8:]}  title and settings pushed  renamed\n"
    )
    assert "up to date" in run("sessions", "push", session).out
    with opened(local) as store:
        store.update_session(session, pins=[])
    assert "title and settings pushed" in run("sessions", "push", session).out
    with opened(address) as store:
        assert store.session(session).title == "renamed"
        assert store.state(session).pins == ()


def test_a_task_goes_with_its_session(run: Run, local: str, address: str) -> None:
    session = make(local, "start")
    with opened(local) as store:
        call = ToolCall("t", "task", "{}")
        reply = store.append(session, Message("assistant", "", tool_calls=(call,)))
        asked_by = AskedBy(reply.id, 0)
        task = store.create_session(folder="/w", model="m", rolling=False, asked_by=asked_by).id
    say(local, task, "look")
    assert run("sessions", "push", task).out.startswith(f"{session[-8:]}  3 messages pushed  start\n")
    with opened(address) as store:
        assert [one.id for one in store.tasks(session)] == [task]


def test_a_session_that_is_open_stays_as_it_is_and_the_others_go(run: Run, local: str, address: str) -> None:
    first, second = make(local, "first"), make(local, "second")
    run("sessions", "push", first)
    say(local, first, "more")
    with opened(address) as store:
        assert store.claim(first) is None
        ran = run("sessions", "push", "--all")
        assert len(store.branch(first)) == 1
    assert ran.code == 1
    assert f"{first[-8:]}  not pushed: session {first[-8:]} is open in another terminal (" in ran.out
    assert f"{second[-8:]}  1 message pushed  second\n2 sessions: 1 pushed, 1 failed\n" in ran.out
    assert ran.err == "rolling-chat: 1 of 2 sessions could not be pushed\n"
    assert run("sessions", "push", "--all").code == 0


def test_a_reply_that_is_being_written_is_pulled_once_it_is_whole(run: Run, local: str, address: str) -> None:
    session = make(address, "well?")
    with opened(address) as store:
        store.claim(session)
        reply = store.begin_reply(session, OFFLINE)
        store.grow_reply(reply, "half")
        assert "1 message pulled" in run("sessions", "pull", session).out
        store.seal_reply(reply, Message("assistant", "half and half"))
        assert "1 message pulled" in run("sessions", "pull", session).out
    with opened(local) as store:
        assert [message.text for message in store.branch(session)] == ["well?", "half and half"]


@pytest.mark.parametrize("way", ["push", "pull"])
def test_what_cannot_be_copied_is_one_line(run: Run, program: Program, local: str, way: str) -> None:
    make(local, "a")
    for ran, code, line in (
        (program("sessions", way, "--all"), 2, "no database is named; set store under [sessions]"),
        (run("sessions", way), 2, "name the sessions, or say --all"),
        (run("sessions", way, "x", "--all"), 2, "takes names or --all, not both"),
        (run("sessions", way, "zzz"), 2, "no session matches 'zzz'"),
        (
            program("-c", "sessions.store=postgresql://x@/x?host=/nowhere", "sessions", way, "--all"),
            1,
            "cannot",
        ),
    ):
        assert ran.code == code
        assert line in ran.err
        assert ran.err.count("\n") == 1
        assert ran.out == ""


def test_where_there_is_nothing_nothing_is_made(run: Run, local: str, program: Program) -> None:
    assert run("sessions", "push", "--all").out == "No sessions to push.\n"
    assert not (program.home / "rolling-chat" / "sessions.db").exists()
    assert run("sessions", "pull", "--all").out == "No sessions to pull.\n"


def test_a_session_of_somebody_else_is_not_written_to(run: Run, local: str, address: str) -> None:
    session = make(local, "mine")
    run("sessions", "push", session)
    with opened(address) as store:
        before = store.copy_of(session)
    database = address.partition("@/")[2].partition("?")[0]
    theirs = "UPDATE rolling_chat.session SET owner = 'ada'; UPDATE rolling_chat.message SET owner = 'ada'"
    shared_server().sql(theirs, database)
    say(local, session, "more")
    ran = run("sessions", "push", session)
    assert ran.code == 1
    assert f"not pushed: session '{session[-8:]}' is somebody else's in this store; export it" in ran.out
    with opened(address) as store:
        assert store.copy_of(session) == before
