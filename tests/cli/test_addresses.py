"""Where `-p` sends a conversation, and that it says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.program import Program
from tests.support.servers import OpenAIServer

MODEL = "openai/gpt-4o"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(models=("one",)).in_thread() as running:
        yield running


@pytest.fixture
def other() -> Iterator[OpenAIServer]:
    with OpenAIServer(models=("gpt-4o", "gpt-small")).in_thread() as running:
        yield running


def test_a_continued_session_goes_where_it_was_begun_and_says_so(
    program: Program, server: OpenAIServer, other: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = program("-p", "hello", "--model", MODEL, "--api-base", server.api_base)
    assert (first.code, first.out) == (0, "ok\n")
    assert f"model: {MODEL} at {server.api_base} (from --model)" in first.err

    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    monkeypatch.setenv("OPENAI_BASE_URL", other.api_base)
    again = program("--continue", "-p", "and now?", "-c", f'models."{MODEL}".api_base={other.api_base}')
    assert (again.code, again.out) == (0, "ok\n")
    assert f"model: {MODEL} at {server.api_base} (from this session)" in again.err
    assert (len(server.requests), len(other.requests)) == (2, 0)
    assert f"address     {server.api_base}\n" in program("sessions", "show", _only(program)).out

    assert program("--continue", "-p", "there", "--api-base", other.api_base).code == 0
    assert program("--continue", "-p", "there").code == 0
    assert (len(server.requests), len(other.requests)) == (2, 2)


def test_a_session_from_before_is_not_sent_anywhere_by_itself(program: Program, server: OpenAIServer) -> None:
    program("-p", "hello", "--model", MODEL, "--api-base", server.api_base)
    with closing(sqlite3.connect(program.home / "rolling-chat" / "sessions.db")) as connection, connection:
        connection.execute("UPDATE session SET api_base = NULL")
    ran = program("--continue", "-p", "and now?")
    assert (ran.code, ran.out) == (2, "")
    assert "give it with --api-base URL, or --api-base default for api.openai.com" in ran.err
    assert len(server.requests) == 1
    assert program("--continue", "-p", "and now?", "--api-base", server.api_base).code == 0
    assert program("--continue", "-p", "and now?").code == 0
    assert len(server.requests) == 3


def test_a_model_has_to_be_chosen(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLING_CHAT_MODEL")
    ran = program("-p", "hello")
    assert (ran.code, ran.out) == (2, "")
    assert "--model demo/offline" in ran.err
    assert ran.err.count("\n") == 1
    assert program("-p", "hello", "--model", "demo/offline").code == 0
    assert program("-p", "hello", "--continue").code == 0


def test_an_address_alone_takes_the_only_model_there(program: Program, server: OpenAIServer) -> None:
    ran = program("-p", "hello", "--api-base", server.api_base)
    assert ran.code == 0
    assert f"model: openai/one at {server.api_base}" in ran.err
    assert server.requests[0].body["model"] == "one"


def test_an_address_alone_takes_the_model_of_the_settings_where_it_is_there(
    program: Program, other: OpenAIServer
) -> None:
    assert program("-p", "hello", "-c", "model=openai/gpt-small", "--api-base", other.api_base).code == 0
    assert other.requests[0].body["model"] == "gpt-small"


def test_an_address_alone_with_several_models_lists_them(program: Program, other: OpenAIServer) -> None:
    ran = program("-p", "hello", "--api-base", other.api_base)
    assert (ran.code, ran.out) == (2, "")
    assert "has gpt-4o, gpt-small; choose one with --model" in ran.err
    assert other.requests == []


def test_an_address_alone_that_lists_nothing_is_said(program: Program) -> None:
    ran = program("-p", "hello", "--api-base", "http://ada:secret@127.0.0.1:9/v1")
    assert ran.code == 2
    assert "http://127.0.0.1:9/v1 did not list its models" in ran.err
    assert "secret" not in ran.err


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "localhost", "ftp://x"])
def test_what_is_no_address_is_refused(program: Program, address: str) -> None:
    ran = program("-p", "hello", "--model", MODEL, "--api-base", address)
    assert ran.code == 2
    assert "begins with http:// or https://" in ran.err


def test_a_missing_key_is_said_at_the_start_and_once(program: Program) -> None:
    ran = program("-p", "hello", "--model", "anthropic/claude-sonnet-4-5")
    assert ran.code == 1
    assert ran.err.count("No key for anthropic: set ANTHROPIC_API_KEY.") == 1


def test_a_window_that_is_only_assumed_is_said(program: Program, server: OpenAIServer) -> None:
    ran = program("-p", "hello", "--model", "openai/one", "--api-base", server.api_base)
    assert "The window of openai/one is not known: 128,000 tokens are assumed." in ran.err
    known = ("-c", 'models."openai/one".max_input_tokens=8192')
    ran = program("-p", "hello", "--model", "openai/one", "--api-base", server.api_base, *known)
    assert "is not known" not in ran.err


def _only(program: Program) -> str:
    (row,) = program("sessions", "list", "--json").json
    return str(row["id"])
