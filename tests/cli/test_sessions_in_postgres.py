"""The program with its sessions in PostgreSQL: every command works on those, and local ones stay local."""

from __future__ import annotations

import pytest

from tests.support.postgres import new_database, shared_server
from tests.support.program import Program


@pytest.fixture
def address() -> str:
    server = shared_server()
    return server.url(new_database(server))


def test_what_is_said_there_is_listed_found_exported_and_gone_on_with(program: Program, address: str) -> None:
    local = program("-p", "local words", "--output-format", "json").json["session_id"]
    store = ("-c", f"sessions.store={address}")
    session = program(*store, "-p", "list files", "--output-format", "json").json["session_id"]
    again = program(*store, "-p", "and again", "--resume", session, "--output-format", "json").json
    assert again["session_id"] == session
    listed = program(*store, "sessions", "list").out
    assert "list files" in listed
    assert "local words" not in listed
    assert "1 session stayed on this machine, all or in part: " in listed
    assert "stayed" not in program("sessions", "list").out
    assert program(*store, "sessions", "search", "again").out.startswith(session[-8:])
    assert "and again" in program(*store, "sessions", "export", session, "--format", "markdown").out
    assert "(1 saved)" in program(*store, "doctor").out
    assert local[-8:] in program("sessions", "list").out
