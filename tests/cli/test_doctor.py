"""`rolling-chat doctor`."""

from __future__ import annotations

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


def test_a_damaged_store_is_shown_and_left_alone(program: Program) -> None:
    database = program.home / "rolling-chat" / "sessions.db"
    database.parent.mkdir()
    database.write_text("not a database at all")
    ran = program("doctor")
    assert ran.code == 1
    assert f"! sessions     the session store {database}" in ran.out
    assert database.read_text() == "not a database at all"
