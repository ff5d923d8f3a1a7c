"""Bad usage and bad settings: one line, what is allowed, exit 2."""

from __future__ import annotations

import pytest

from tests.support.program import Program


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["--resum", "x"], "unknown option --resum; did you mean --resume?"),
        (["frobnicate"], "invalid choice: 'frobnicate' (choose from 'sessions'"),
        (["sessions", "nope"], "choose from 'list', 'show', 'export', 'delete'"),
        (["-p", "x", "--output-format", "xml"], "choose from 'text', 'json', 'stream-json'"),
        (["-p", "x", "--approvals", "maybe"], "choose from 'read-only', 'plan', 'ask', 'edits', 'all'"),
        (["-p", "x", "--max-iterations", "0"], "'0' is not a whole number above 0"),
        (["-p", "x", "-c", "foo=1"], "unknown key foo"),
        (["-p", "x", "-c", "context.enabled=perhaps"], "context.enabled"),
        (
            ["-p", "x", "--tools", "hammer"],
            "The tools are: read_file, list_files, search_files, edit_file, multi_edit",
        ),
        (["-p", "x", "--model", "openai/gpt-4oo"], "OPENAI_API_KEY"),
        (["-p", "x", "--model", "gpt-4oo"], "gpt-4o"),
        (["-p", "x", "--resume", "zz"], "no session matches 'zz'"),
        (["-p", "x", "--continue"], "there is no session of"),
        (["-p", "x", "--no-save", "--continue"], "--no-save begins a session of its own"),
        (["-p"], '-p needs a text, as in rolling-chat -p "text"'),
        (["--continue", "--resume", "x"], "not allowed with"),
        (["sessions", "show", "zz"], "no session matches 'zz'"),
        ([], 'the chat needs a terminal; in scripts use rolling-chat -p "text"'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(program: Program, argv: list[str], wanted: str) -> None:
    ran = program(*argv)
    assert wanted in ran.err
    assert ran.code == (1 if "API_KEY" in wanted else 2)
    assert [wanted in line for line in ran.err.splitlines() if "model: " not in line] == [True]
    assert ran.out == ""


def test_an_unknown_theme_is_refused_with_the_themes_there_are(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolling_chat.cli.interactive._has_terminal", lambda: True)
    ran = program("-c", "theme=neon")
    assert ran.code == 2
    assert "midnight" in ran.err
    assert "daylight" in ran.err


def test_a_bad_settings_file_stops_the_program_and_is_named(program: Program) -> None:
    config = program.home / "rolling-chat" / "config.toml"
    config.parent.mkdir()
    config.write_text('modle = "x"\n')
    ran = program("-p", "hello")
    assert ran.code == 2
    assert str(config) in ran.err
    assert "did you mean model?" in ran.err


def test_a_foreign_database_is_left_as_it_is(program: Program) -> None:
    database = program.home / "rolling-chat" / "sessions.db"
    database.parent.mkdir()
    database.write_bytes(b"\xff\xd8\xff\xe0 a picture of somebody's cat")
    ran = program("-p", "hello")
    assert ran.code == 1
    assert str(database) in ran.err
    assert database.read_bytes().startswith(b"\xff\xd8\xff\xe0")


def test_a_fault_of_the_program_is_one_line_that_names_the_log(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("rolling_chat.cli.script.settings_of", broken)
    ran = program("-p", "hello")
    assert ran.code == 1
    log_file = program.home / "rolling-chat" / "rolling-chat.log"
    assert ran.err == f"rolling-chat: a fault of the program (RuntimeError); details in {log_file}\n"
    assert "boom" in log_file.read_text()


def test_an_unknown_variable_is_one_line_and_stops_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "environment: unknown variable ROLLING_CHAT_MODLE is not used; did you mean ROLLING_CHAT_MODEL?"
    monkeypatch.setenv("ROLLING_CHAT_MODLE", "x")
    ran = program("-p", "hello")
    assert (ran.code, ran.err.count(f"rolling-chat: {line}\n")) == (0, 1)
    doctor = program("doctor")
    assert (doctor.code, doctor.out.count(line)) == (0, 1)
