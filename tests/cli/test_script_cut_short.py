"""`-p` when the answer does not come to its end: cut, broken off, ended from outside, or nobody reads it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, Ran
from tests.support.servers import Break, Fail, OpenAIServer, Reply

FORMATS = ("text", "json", "stream-json")


@pytest.fixture
def server(program: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server whose script the test sets."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any-key")
    with OpenAIServer().in_thread() as running:
        yield running


def _ask(program: Program, server: OpenAIServer, step: Reply | Break | Fail, *more: str) -> Ran:
    server.then(step)
    return program("-p", "go", "--model", "openai/gpt-4o", "--api-base", server.api_base, *more)


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_cut_answer_is_given_and_said_to_be_cut(
    program: Program, server: OpenAIServer, output_format: str
) -> None:
    ran = _ask(program, server, Reply("one two", finish_reason="length"), "--output-format", output_format)
    assert ran.code == 0
    assert "one two" in ran.out
    assert "cut at its output limit" in ran.err
    assert "cut at" not in ran.out


@pytest.mark.parametrize("output_format", FORMATS)
def test_each_wait_for_another_try_is_a_line_on_stderr(
    program: Program, server: OpenAIServer, output_format: str
) -> None:
    server.then(Fail(429, {"error": {"message": "Rate limit reached"}}, {"retry-after": "0.01"}))
    ran = _ask(program, server, Reply("at last"), "--output-format", output_format)
    assert ran.code == 0
    (line,) = [line for line in ran.err.splitlines() if "trying again" in line]
    assert re.search(r"asks to slow down \(rate limit\); trying again in 0\.\d s, for \d+ s more", line)


def test_no_retry_minutes_are_one_try(program: Program, server: OpenAIServer) -> None:
    ran = _ask(program, server, Fail(503, "busy"), "-c", "agent.retry_minutes=0")
    assert ran.code == 1
    assert len(server.requests) == 1


def test_a_fallback_answers_and_a_line_on_stderr_names_it(program: Program, server: OpenAIServer) -> None:
    """The setting comes with `-c`; that of a project is ignored."""
    project = program.folder / ".rolling-chat" / "config.toml"
    project.parent.mkdir()
    project.write_text('fallback = ["openai/projects-choice"]')
    server.then(Fail(503, "busy"), Reply("Here."))
    ran = program(
        "-p", "go", "--model", "openai/gpt-4o", "--api-base", server.api_base, "--trust",
        "-c", "agent.retry_minutes=0", "-c", "fallback=openai/gpt-4.1-mini", "--output-format", "json",
    )  # fmt: skip
    assert ran.code == 0
    assert [request.body["model"] for request in server.requests] == ["gpt-4o", "gpt-4.1-mini"]
    (line,) = [line for line in ran.err.splitlines() if "answers instead" in line]
    assert "openai/gpt-4.1-mini answers instead" in line
    (ignored,) = [line for line in ran.err.splitlines() if "a project may not set this" in line]
    assert "fallback = a list" in ignored
    assert (ran.json["reply"], ran.json["model"]) == ("Here.", "openai/gpt-4.1-mini")


@pytest.mark.parametrize(
    ("output_format", "in_order"), [("text", False), ("text", True), ("json", True), ("stream-json", False)]
)
def test_a_broken_answer_is_kept_and_exits_1(
    program: Program, server: OpenAIServer, output_format: str, in_order: bool
) -> None:
    step = Break(Reply("one two three"), pieces=2, in_order=in_order)
    ran = _ask(program, server, step, "--output-format", output_format)
    assert ran.code == 1
    assert "one two" in ran.out
    assert "Traceback" not in ran.err
    if output_format == "text":
        assert ran.out == "one two \n"
        assert len([line for line in ran.err.splitlines() if "broke" in line]) == 1
    else:
        result = json.loads(ran.out.splitlines()[-1])
        assert result["reply"] == "one two "
        assert result["error"]
    (session,) = program("sessions", "list", "--json").json
    assert session["messages"] == 2
    assert "one two" in program("sessions", "export", session["id"]).out


def test_a_refusal_of_the_server_is_one_line_and_exits_1(program: Program, server: OpenAIServer) -> None:
    ran = _ask(program, server, Fail(400, {"error": {"message": "bad \x1b[2J thing\nand more"}}))
    assert (ran.code, ran.out) == (1, "")
    assert len([line for line in ran.err.splitlines() if "refused" in line]) == 1
    assert len(ran.err.splitlines()) == 2  # the first says where it goes
    assert "\x1b" not in ran.err


@pytest.mark.slow
def test_an_end_from_outside_keeps_what_was_said_and_exits_130(program: Program) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "rolling_chat", "-p", "tell me", "--output-format", "stream-json"],
        cwd=program.folder,
        env={**program.environ, "ROLLING_CHAT_OFFLINE_DELAY": "2000"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    line = {"type": ""}
    while line["type"] != "text":
        line = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert json.loads(out.splitlines()[-1])["reply"].startswith(line["text"])
    assert "Traceback" not in err
    (session,) = program("sessions", "list", "--json").json
    assert session["messages"] == 2
    assert program("--continue", "-p", "hello").code == 0


@pytest.mark.parametrize(
    "output_format", ["text", *(pytest.param(name, marks=pytest.mark.slow) for name in FORMATS[1:])]
)
def test_nobody_to_read_the_answer_is_no_fault_of_the_program(program: Program, output_format: str) -> None:
    asking = f"{sys.executable} -m rolling_chat -p hello --output-format {output_format}"
    ran = subprocess.run(
        ["bash", "-c", f"{asking} | head -c 0"],
        cwd=program.folder,
        env=program.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr
    assert "fault of the program" not in ran.stderr
    assert not _tracebacks(program.home)


def _tracebacks(home: Path) -> list[str]:
    return [file.name for file in home.rglob("*.log") if "Traceback" in file.read_text()]
