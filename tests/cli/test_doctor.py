"""`rolling-chat doctor`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Literal

import pytest

from rolling_chat.cli import doctor
from rolling_chat.settings.schema import AgentSettings, Settings
from rolling_chat.tools.sandbox.sandbox import SandboxProgram
from tests.support.program import Program


def test_it_shows_versions_folders_model_encodings_and_window(program: Program) -> None:
    ran = program("doctor")
    assert ran.code == 0
    for wanted in (
        "rolling-chat",
        "litellm      1.105",
        "demo/offline",
        "8,192 tokens",
        "o200k_base   found",
        "sessions.db",
        "learned      nothing yet of this model",
    ):
        assert wanted in ran.out
    assert not (program.home / "rolling-chat" / "sessions.db").exists()


def test_it_answers_for_another_model(program: Program) -> None:
    out = program("doctor", "--model", "anthropic/claude-sonnet-4-5").out
    assert "200,000 tokens" in out
    assert "$3.00 a million tokens in" in out


@pytest.mark.parametrize(
    ("model", "environ", "counted"),
    [
        ("anthropic/claude-sonnet-4-5", {}, "by estimate; by the provider's own count where that decides"),
        ("openai/tiny", {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}, "by its server, if that is llama"),
        ("openai/tiny", {"OPENAI_BASE_URL": "https://gpu.example/v1"}, "by estimate; by its server where"),
        ("openai/gpt-4o", {}, "by estimate until the first reply"),
    ],
)
def test_it_says_how_requests_are_counted(
    program: Program, monkeypatch: pytest.MonkeyPatch, model: str, environ: dict[str, str], counted: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert f"counted      {counted}" in program("doctor", "--model", model).out


def test_a_damaged_store_is_shown_and_left_alone(program: Program) -> None:
    database = program.home / "rolling-chat" / "sessions.db"
    database.parent.mkdir()
    database.write_text("not a database at all")
    ran = program("doctor")
    assert ran.code == 1
    assert f"! sessions     the session store {database}" in ran.out
    assert database.read_text() == "not a database at all"


def test_every_fault_of_every_file_is_reported(program: Program) -> None:
    home = program.home / "rolling-chat"
    (home / "themes").mkdir(parents=True)
    (home / "config.toml").write_text(
        'theme = "moss"\ncolor = 1\n[context]\ntrim_to = 7\n[agent]\ntools = 3\n'
    )
    (home / "themes" / "bad.toml").write_text("name = 7")
    (home / "themes" / "worse.toml").write_text("][")
    project = program.folder / ".rolling-chat" / "config.toml"
    project.parent.mkdir()
    project.write_text('trusted_folders = ["/"]\n[context]\ntrim_to = "x"\n')
    ran = program("--trust", "doctor", "-c", "nonsense")
    assert ran.code == 1
    faults = [line for line in ran.out.splitlines() if line.startswith("!")]
    for wanted in (
        "color", "context.trim_to = 7", "agent.tools = 3", "nonsense: must be key=value",
        'context.trim_to = "x"', "bad.toml: name = 7", "worse.toml, line 1",
        'unknown theme "moss"',
    ):  # fmt: skip
        assert sum(wanted in line for line in faults) == 1, (wanted, faults)
    assert len(faults) == 8
    assert "a project may not set this" in ran.out
    assert "o200k_base   found" in ran.out


def test_rows_of_wrong_types_are_reported_and_the_rest_is_shown(program: Program) -> None:
    program("-p", "list files")
    database = program.home / "rolling-chat" / "sessions.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("DROP TABLE session")
        connection.execute("CREATE VIEW session AS SELECT 'x' AS number, 7 AS id")
        connection.commit()
    ran = program("doctor")
    assert ran.code == 1
    assert [line.split()[1] for line in ran.out.splitlines() if line.startswith("!")] == ["sessions"]
    assert "o200k_base   found" in ran.out


@pytest.mark.parametrize(
    ("mode", "program", "says", "is_fine"),
    [
        ("auto", SandboxProgram("bubblewrap", "/usr/bin/bwrap"), "bubblewrap (/usr/bin/bwrap)", True),
        ("auto", SandboxProgram("", missing="bubblewrap is not installed"), "none: bubblewrap is not", True),
        ("required", SandboxProgram("", missing="bubblewrap is not installed"), "so no command runs", False),
        ("off", SandboxProgram("bubblewrap", "/usr/bin/bwrap"), "off (agent.sandbox)", True),
    ],
)
def test_it_says_what_confines_commands(
    monkeypatch: pytest.MonkeyPatch, mode: Literal["auto", "off", "required"], program: SandboxProgram,
    says: str, is_fine: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(doctor, "find_sandbox", lambda: program)
    ((name, value, fine),) = doctor._sandbox(Settings(agent=AgentSettings(sandbox=mode)))
    assert (name, fine) == ("sandbox", is_fine)
    assert says in value
