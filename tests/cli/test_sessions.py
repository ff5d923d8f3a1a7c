"""`rolling-chat sessions`."""

from __future__ import annotations

import re

import pytest

from tests.support.program import Program


@pytest.fixture
def session(program: Program) -> str:
    return str(program("-p", "list files", "--output-format", "json").json["session_id"])


def test_the_list_is_newest_first_with_every_field(program: Program, session: str) -> None:
    newer = program("-p", "hello again", "--output-format", "json").json["session_id"]
    rows = program("sessions", "list", "--json").json
    assert [row["id"] for row in rows] == [newer, session]
    assert rows[1] | {"updated_at": 0, "created_at": 0} == {
        "id": session,
        "title": "list files",
        "folder": str(program.folder),
        "model": "demo/offline",
        "messages": 4,
        "has_summary": False,
        "rolling": False,
        "created_at": 0,
        "updated_at": 0,
    }
    assert session in program("sessions", "list").out
    assert program("sessions").out == program("sessions", "list").out


def test_show_says_what_is_known(program: Program, session: str) -> None:
    out = program("sessions", "show", session[:4]).out
    assert session in out
    assert re.search(r"^requests +2$", out, re.MULTILINE)


def test_export_writes_the_whole_branch_as_markdown(program: Program, session: str) -> None:
    out = program("sessions", "export", session).out
    assert out.startswith("# ")
    assert "list files" in out
    assert "list_files" in out


def test_delete_asks_or_wants_yes(program: Program, session: str) -> None:
    assert program("sessions", "delete", session).code == 2
    assert program("sessions", "delete", session, "--yes").code == 0
    assert program("sessions", "list", "--json").json == []
