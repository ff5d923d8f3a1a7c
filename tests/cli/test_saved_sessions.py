"""`rolling-chat sessions`."""

from __future__ import annotations

import re

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoredSummary
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
        "short": session[-8:],
        "title": "list files",
        "folder": str(program.folder),
        "model": "demo/offline",
        "api_base": "",
        "messages": 4,
        "has_summary": False,
        "rolling": False,
        "created_at": 0,
        "updated_at": 0,
    }
    assert f"\n{session[-8:]}  " in program("sessions", "list").out
    assert program("sessions").out == program("sessions", "list").out


def test_a_summary_is_listed_and_exported(program: Program, session: str) -> None:
    store = open_store(program.home / "rolling-chat" / "sessions.db")
    last = store.branch(session)[-1]
    store.publish_summary(session, StoredSummary("They listed files.", last.id), expected=0)
    store.close()
    assert "  summarized  list files" in program("sessions", "list").out
    written = program("sessions", "export", session, "--format", "json").json
    assert (written["summary"]["text"], written["summary"]["through"]) == ("They listed files.", 4)


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


def test_search_names_session_turn_and_place(program: Program, session: str) -> None:
    out = program("sessions", "search", "list", "fil*").out
    assert out.startswith(f"{session[-8:]}  ")
    assert "turn 1" in out
    assert "[list]" in out
    (hit, *_) = program("sessions", "search", '"list files"', "--json").json
    assert (hit["session_id"], hit["role"], hit["turn"], hit["on_branch"]) == (session, "user", 1, True)
    assert program("sessions", "search", "zebra", "--json").json == []
    assert program("sessions", "search", "zebra").out == "No message contains 'zebra'.\n"
    assert len(program("sessions", "search", "files", "--json", "--limit", "1").json) == 1


@pytest.mark.parametrize("words", ['"', "AND", "a*b", "NEAR(", "-x", "%"])
def test_no_words_are_an_error(program: Program, session: str, words: str) -> None:
    assert program("sessions", "search", "--", words).code == 0


def test_what_was_exported_is_imported_again(program: Program, session: str) -> None:
    for name in ("json", "jsonl"):
        text = program("sessions", "export", session, "--format", name).out
        (program.folder / f"talk.{name}").write_text(text)
        assert (
            f"session {session} has the same messages already"
            in program("sessions", "import", f"talk.{name}").out
        )
    program("sessions", "delete", session, "--yes")
    assert "Imported" in program("sessions", "import", "talk.json").out
    (row,) = program("sessions", "list", "--json").json
    assert (row["title"], row["messages"]) == ("list files", 4)
    assert program("sessions", "export", row["id"], "--format", "html").out.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("enabled", [True, False])
def test_an_imported_session_has_rolling_context_on_if_new_ones_have(program: Program, enabled: bool) -> None:
    config = program.home / "rolling-chat" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[context]\nenabled = {str(enabled).lower()}\n")
    (program.folder / "talk.json").write_text('[{"role": "user", "content": "one"}]')
    program("sessions", "import", "talk.json")
    assert [row["rolling"] for row in program("sessions", "list", "--json").json] == [enabled]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "is empty"),
        (b"no json at all", "is not JSON"),
        (b"\x80\x81", "is not UTF-8"),
        (b'{"role": "user", "content": "a"}\n{"role"', "line 2 of talk is not JSON"),
        (b"5", "is not a conversation"),
    ],
)
def test_what_cannot_be_imported_is_one_line(program: Program, content: bytes, line: str) -> None:
    (program.folder / "talk").write_bytes(content)
    ran = program("sessions", "import", "talk")
    assert ran.code == 2
    assert line in ran.err
    assert ran.err.count("\n") == 1
    assert program("sessions", "list", "--json").json == []


def test_conversations_before_a_broken_line_are_kept_and_said(program: Program) -> None:
    talk = b'{"id": "a", "messages": [{"role": "user", "content": "one"}]}\n{oops\n'
    (program.folder / "talk.jsonl").write_bytes(talk)
    ran = program("sessions", "import", "talk.jsonl")
    assert (ran.code, len(program("sessions", "list", "--json").json)) == (2, 1)
    assert ran.err.endswith("; 1 before it was imported\n")
