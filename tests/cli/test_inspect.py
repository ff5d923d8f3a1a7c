"""`rolling-chat inspect`: a request that was sent, built again."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.program import Program


@pytest.fixture
def session(program: Program) -> str:
    """A session of two requests: the model calls a tool, then answers."""
    return str(program("-p", "list files", "--output-format", "json").json["session_id"])


def _alter_results(program: Program) -> None:
    with closing(sqlite3.connect(Path(program.environ["ROLLING_CHAT_HOME"]) / "sessions.db")) as database:
        database.execute("UPDATE message SET content = 'something else' WHERE role = 'tool'")
        database.commit()


def test_it_shows_categories_and_what_became_of_every_message(program: Program, session: str) -> None:
    ran = program("inspect", f"{session}:2")
    assert ran.code == 0
    lines = ran.out.splitlines()
    named = re.match(r"request (q[0-9a-f]{8}) of session ([0-9a-f]{8}), sent ", lines[0])
    assert named is not None
    assert session.endswith(named[2])
    assert program("inspect", named[1]).out == ran.out
    assert [line.split()[0] for line in lines if "%" in line] == [
        "system", "tools", "summary", "history", "current", "reserve", "margin",
    ]  # fmt: skip
    rows = [
        line.split() for line in lines if " sent " in line and line.startswith("r") and "request" not in line
    ]
    assert [row[:2] for row in rows[1:]] == [["r1", "user"], ["r2", "assistant"], ["r3", "tool"]]


def test_a_session_lists_its_requests(program: Program, session: str) -> None:
    ran = program("inspect", session)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"session {session[-8:]}, list files: 2 requests"
    rows = [line.split() for line in lines if "answered" in line]
    listed = program("inspect", session[-8:-3], "--json").json
    assert [row[:2] for row in rows] == [[str(row["number"]), row["short"]] for row in listed]
    assert [(row["number"], row["purpose"]) for row in listed] == [(1, "answer"), (2, "answer")]
    assert program("inspect", listed[1]["id"]).out == program("inspect", f"{session}:2").out


def test_verifying_a_session_verifies_every_request(program: Program, session: str) -> None:
    assert program("inspect", session, "--verify").out.count("verified") == 2
    _alter_results(program)
    ran = program("inspect", session, "--verify")
    assert ran.code == 1
    rows = program("inspect", session, "--verify", "--json").json
    assert [row["same"] for row in rows] == [True, False]
    said = f"1 of 2 requests cannot be shown to be what was sent: {rows[1]['short']}"
    assert ran.err == f"rolling-chat: {said}\n"


@pytest.mark.usefixtures("session")
def test_the_name_of_a_message_is_no_request(program: Program) -> None:
    ran = program("inspect", "r2")
    assert (ran.code, ran.err) == (
        2, "rolling-chat: r2 is a message, and requests are named q7b60935b or SESSION:N\n"
    )  # fmt: skip


def test_verify_exits_with_1_and_a_line_when_something_differs(program: Program, session: str) -> None:
    first, second = (row["short"] for row in program("inspect", session, "--json").json)
    verified = program("inspect", second, "--verify").out.splitlines()[-1]
    assert verified.startswith("verified: the same to the byte")
    _alter_results(program)
    ran = program("inspect", second, "--verify")
    assert ran.code == 1
    assert ran.err.startswith(f"rolling-chat: request {second} is not the one that was sent: ")
    assert ran.err.count("\n") == 1
    assert program("inspect", second).code == 0
    assert program("inspect", first, "--verify").code == 0


def test_json_has_the_same_figures_and_the_rows(program: Program, session: str) -> None:
    shown = program("inspect", f"{session[-8:-3]}:2", "--json", "--verify").json
    assert (shown["short"], shown["session"], shown["same"]) == (f"q{shown['id'][-8:]}", session, True)
    assert shown["reported"]["input_tokens"] <= shown["bound"]
    assert [(row["id"], row["fate"]) for row in shown["messages"]] == [(f"r{at}", "sent") for at in range(4)]
    assert sum(row["tokens_after"] for row in shown["messages"][1:]) <= shown["token_count"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("q99999999", "no request begins with 'q99999999'"),
        ("q", "several requests begin with 'q': q"),
        ("", "no session matches ''"),
        ("\x1b[31m", "no session matches"),
        ("zzzz:1", "no session matches 'zzzz'"),
    ],
)
@pytest.mark.usefixtures("session")
def test_a_request_that_there_is_not_is_one_line(program: Program, name: str, said: str) -> None:
    ran = program("inspect", name)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err


@pytest.mark.parametrize("number", ["0", "3", "999999999"])
def test_a_session_has_only_so_many_requests(program: Program, session: str, number: str) -> None:
    ran = program("inspect", f"{session}:{number}")
    assert ran.code == 2
    assert f"has no request {number}: its requests are 1 to 2" in ran.err


def test_before_the_first_session_there_is_nothing_to_inspect(program: Program) -> None:
    ran = program("inspect", "q1")
    assert ran.code == 2
    assert "no request was sent yet" in ran.err
