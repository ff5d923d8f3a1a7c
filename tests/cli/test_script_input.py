"""`-p --input-format stream-json`: a conversation over a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.program import Program

STREAM = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")


def results(program: Program, *lines: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Send lines; return the exit code, and what came of each but the parts of the answers."""
    ran = program.child(*STREAM, stdin=b"".join(line + b"\n" for line in lines))
    events = [json.loads(line) for line in ran.out.splitlines()]
    return ran.code, [event for event in events if event["type"] in {"result", "error"}]


def said(text: str) -> bytes:
    return json.dumps({"type": "user", "text": text}).encode()


def test_each_message_is_a_turn_of_one_session(program: Program) -> None:
    code, (first, second) = results(
        program, said("The parser lives in lexer.py."), said("Where does the parser live?")
    )
    assert code == 0
    assert "lexer.py" in second["reply"]
    assert first["session_id"] == second["session_id"]


@pytest.mark.parametrize("content", ["list files", [{"type": "text", "text": "list files"}]])
def test_messages_in_the_form_of_claude_code_are_read(program: Program, content: Any) -> None:
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode()
    _, (result,) = results(program, line)
    assert [call["name"] for call in result["tool_calls"]] == ["list_files"]


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b'{"type": "user"}',
        b'{"type": "user", "text": 3}',
        b'{"type": "user", "message": {"content": [{"type": "image"}]}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_message_is_an_error_and_the_next_is_answered(
    program: Program, line: bytes
) -> None:
    code, (error, result) = results(program, line, b"", said("hello"))
    assert (code, error["type"]) == (1, "error")
    assert error["error"].startswith("line 1: ")
    assert result["reply"]


def test_nothing_on_stdin_is_nothing_to_answer(program: Program) -> None:
    assert results(program) == (0, [])


def test_a_mention_in_a_message_attaches_nothing(program: Program) -> None:
    (program.folder / "secret.txt").write_text("the password is apple")
    _, (result,) = results(program, said("look at @secret.txt"))
    assert "apple" not in json.dumps(result)


def test_an_interrupt_stops_the_turn_and_the_conversation_goes_on(program: Program) -> None:
    slow = {**program.environ, "ROLLING_CHAT_OFFLINE_DELAY": "100"}
    argv = [sys.executable, "-m", "rolling_chat", *STREAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=program.folder, env=slow, stdin=pipe, stdout=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(said("What can you do? " * 20) + b"\n")
        child.stdin.flush()
        events = map(json.loads, child.stdout)
        assert next(event for event in events if event["type"] == "text")
        child.stdin.write(b'{"type": "interrupt"}\n')
        child.stdin.flush()
        stopped = next(event for event in events if event["type"] == "result")
        child.stdin.write(said("list files") + b"\n")
        child.stdin.close()
        answered = next(event for event in events if event["type"] == "result")
        assert child.wait(120) == 130
    assert (stopped["outcome"], answered["outcome"]) == ("cancelled", "done")
    assert [call["name"] for call in answered["tool_calls"]] == ["list_files"]


@pytest.mark.parametrize("argv", [("-p", "x", *STREAM[1:]), STREAM[:3]])
def test_it_goes_with_its_own_output_and_without_a_text(program: Program, argv: tuple[str, ...]) -> None:
    ran = program(*argv)
    assert ran.code == 2
    assert "--input-format stream-json takes no text, and --output-format stream-json" in ran.err
