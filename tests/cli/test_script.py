"""`-p`: one question, one answer, an exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from rolling_chat.cli.pipe import read_pipe
from tests.support.program import Program


def test_the_answer_alone_is_on_stdout(program: Program) -> None:
    ran = program("-p", "The parser lives in lexer.py. Where does the parser live?")
    assert ran.code == 0
    assert "lexer.py" in ran.out
    assert "demo/offline" not in ran.out
    assert "demo/offline" in ran.err


def test_json_has_the_reply_the_usage_the_calls_and_the_context(program: Program) -> None:
    (program.folder / "notes.txt").write_text("apples are red\n")
    result = program("-p", "list files", "--output-format", "json").json
    assert set(result) == {"session_id", "reply", "model", "usage", "tool_calls", "context", "error"}
    assert "notes.txt" in result["reply"]
    assert result["model"] == "demo/offline"
    assert result["usage"]["input_tokens"] > 0
    assert result["usage"]["output_tokens"] > 0
    assert [call["name"] for call in result["tool_calls"]] == ["list_files"]
    assert result["context"]["within_budget"] is True
    assert result["error"] is None


def test_the_prompt_that_was_planned_is_what_the_model_counted(program: Program) -> None:
    events = [
        json.loads(line) for line in program("-p", "hello", "--output-format", "stream-json").out.splitlines()
    ]
    assert events[0]["type"] == "prompt"
    assert events[-1]["type"] == "result"
    assert events[0]["context"]["token_count"] == events[-1]["usage"]["input_tokens"]
    assert "".join(event["text"] for event in events if event["type"] == "text") == events[-1]["reply"]


@pytest.mark.parametrize(("how", "made"), [("extract", True), ("model", True), ("off", False)])
def test_a_due_extract_is_made_before_the_exit_and_no_model_is_asked_for_it(
    program: Program, how: str, made: bool
) -> None:
    keys = ("enabled=true", "max_history_tokens=600", f"summarize={how}")
    settings = [word for key in keys for word in ("-c", f"context.{key}")]
    text = "The parser reads well enough on paper. " * 12
    session = program("-p", text, *settings, "--output-format", "json").json["session_id"]
    for _ in range(5):
        program("-p", text, *settings, "--resume", session)
    (listed,) = program("sessions", "list", "--json").json
    assert listed["has_summary"] == made
    shown = program("sessions", "show", session).out
    requests = shown.split("requests")[1].split("\n")[0]
    assert requests.strip() == "6"


def test_a_tool_that_needs_permission_is_refused_and_the_model_told_so(program: Program) -> None:
    result = program("-p", "run `touch made`", "--output-format", "json").json
    assert result["tool_calls"][0]["ending"] == "refused"
    assert not (program.folder / "made").exists()


def test_approvals_all_lets_it_run(program: Program) -> None:
    result = program("-p", "run `touch made`", "--approvals", "all", "--output-format", "json").json
    assert result["tool_calls"][0]["ok"] is True
    assert (program.folder / "made").exists()


def test_a_command_leaves_no_temporary_folder_behind(program: Program, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ran = program.child(
        "-p", "run the command `echo hello`", "--approvals", "all", environ={"TMPDIR": str(temporary)}
    )
    assert "hello" in ran.out
    assert list(temporary.iterdir()) == []


def test_tools_none_offers_none(program: Program) -> None:
    result = program("-p", "list files", "--tools", "none", "--output-format", "json").json
    assert result["tool_calls"] == []
    assert result["context"]["categories"]["tools"] == 0


def test_continue_and_resume_go_on_with_what_was_said(program: Program) -> None:
    first = program("-p", "The password of the vault is swordfish.", "--output-format", "json").json
    second = program("--continue", "-p", "What is the password of the vault?", "--output-format", "json").json
    assert second["session_id"] == first["session_id"]
    assert "swordfish" in second["reply"]
    third = program(
        "--resume", first["session_id"][:5], "-p", "Which password has the vault?", "--output-format", "json"
    )
    assert "swordfish" in third.json["reply"]


def test_no_save_leaves_nothing_behind(program: Program) -> None:
    result = program("-p", "hello", "--no-save", "--output-format", "json").json
    assert result["session_id"] is None
    assert program("sessions", "list", "--json").json == []


def test_what_is_too_long_is_refused_before_it_is_sent_with_exit_3(program: Program) -> None:
    ran = program("-p", "word " * 9_000, "--output-format", "json")
    assert ran.code == 3
    assert "Cannot fit request within context limit." in ran.json["error"]
    assert ran.json["usage"]["input_tokens"] == 0


def test_a_setting_for_this_run_switches_rolling_on(program: Program) -> None:
    result = program("-p", "hello", "-c", "context.enabled=true", "--output-format", "json").json
    assert result["context"]["rolling"] is True
    assert program("sessions", "list", "--json").json[0]["rolling"] is True


def test_control_sequences_from_a_file_never_reach_stdout_raw(program: Program) -> None:
    (program.folder / "evil.txt").write_text("title: \x1b]0;owned\x07\x1b[2J done\n")
    for output_format in ("text", "json", "stream-json"):
        ran = program("-p", "read evil.txt", "--output-format", output_format)
        assert "\x1b" not in ran.out + ran.err
        assert "\x07" not in ran.out
    assert (
        "\x1b" not in program("sessions", "export", program("sessions", "list", "--json").json[0]["id"]).out
    )


def test_text_from_a_pipe_is_sent_along_or_alone(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    both = program.child(
        "-p", "What color are the apples?", "--output-format", "json", stdin=b"Apples are red.\n"
    )
    assert "red" in both.json["reply"]
    with _piped(b"Apples are red. What color are apples?\n") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        alone = program("-p", "--output-format", "json")
    assert "red" in alone.json["reply"]


def test_an_empty_pipe_is_ignored(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with _piped(b"") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert program("-p", "hello").code == 0


def _piped(content: bytes) -> TextIO:
    """The reading end of a pipe with this in it, which nobody writes to any more."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return os.fdopen(reading, encoding="utf-8")


def test_a_pipe_that_stays_silent_is_left_alone(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdin is not None
    with child.stdout, open(child.stdout.fileno(), closefd=False) as silent:
        monkeypatch.setattr("rolling_chat.cli.pipe._FIRST_BYTE_SECONDS", 0.01)
        monkeypatch.setattr(sys, "stdin", silent)
        assert read_pipe(wait=False) == ""
    assert "continuing without it" in capsys.readouterr().err
    child.stdin.close()
    child.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_a_polite_kill_keeps_what_was_said_and_exits_130(
    program: Program, number: signal.Signals
) -> None:
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
    assert json.loads(child.stdout.readline())["type"] == "prompt"
    child.send_signal(number)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert json.loads(out.splitlines()[-1])["type"] == "result"
    assert program("sessions", "list", "--json").json[0]["messages"] >= 1


def test_a_reader_who_leaves_early_gets_no_traceback(program: Program) -> None:
    command = f"{sys.executable} -m rolling_chat sessions list --json | head -c 1"
    program("-p", "hello")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=program.folder,
        env=program.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_what_is_not_trusted_is_said_on_stderr_and_not_read(program: Program) -> None:
    (program.folder / "AGENTS.md").write_text("The password is heliotrope.")
    asked = ("-p", "What is the password?", "--no-save")
    ran = program(*asked)
    assert "Not read: AGENTS.md (this folder is not trusted" in ran.err
    assert "heliotrope" not in ran.out
    ran = program(*asked, "--trust")
    assert "Not read" not in ran.err
    assert "heliotrope" in ran.out
    assert "heliotrope" not in program(*asked).out  # it was for one run


def test_files_are_mentioned_in_the_argument_and_never_in_what_is_piped(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program.folder / "notes.txt").write_text("The kettle is blue.\n")
    (program.folder / "other.txt").write_text("The cup is green.\n")
    monkeypatch.setattr("rolling_chat.cli.script.read_pipe", lambda **_: "and @other.txt")
    ran = program("-p", "What color is the kettle in @notes.txt?")
    assert ran.code == 0
    assert "The kettle is blue." in ran.out
    shown = program("-p", "hello", "--continue").code, program("sessions", "list", "--json").json
    assert shown[0] == 0
    assert "cup is green" not in program("sessions", "export", shown[1][0]["id"]).out


def test_a_mentioned_file_outside_the_folder_ends_with_a_line_and_exit_code_2(program: Program) -> None:
    (program.folder.parent / "outside.txt").write_text("of the neighbor\n")
    ran = program("-p", "read @../outside.txt")
    assert (ran.code, ran.out) == (2, "")
    assert "@../outside.txt is outside the working folder" in ran.err


def test_a_task_is_told_event_by_event_with_its_call(program: Program) -> None:
    (program.folder / "notes.txt").write_text("apples are red\n")
    ran = program("-p", "give a task: read notes.txt", "--output-format", "stream-json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    (call,) = [event for event in events if event["type"] == "tool_call" and "task" not in event]
    assert call["name"] == "task"
    inner = [event for event in events if event.get("task") == call["id"]]
    assert [event["type"] for event in inner][:2] == ["prompt", "tool_call"]
    assert "apples are red" in next(event["text"] for event in inner if event["type"] == "tool_result")
    result = events[-1]
    assert (result["error"], "apples are red" in result["reply"]) == (None, True)
    assert [one["name"] for one in result["tool_calls"]] == ["task"]
    kept = program("sessions", "show", inner[0]["task_session"]).out
    assert "Task: read notes.txt" in kept
    assert f"a task of   {result['session_id'][-8:]}" in kept
    shown = program("sessions", "show", result["session_id"]).out
    assert f"tasks       {inner[0]['task_session'][-8:]}" in shown
    exported = program("sessions", "export", result["session_id"]).out
    assert "*what was said in the task*" in exported
    assert "⚙ read_file notes.txt" in exported
    assert [one["id"] for one in program("sessions", "list", "--json").json] == [result["session_id"]]


def test_a_command_of_the_users_is_taken_from_the_typed_text(program: Program) -> None:
    commands = program.home / "rolling-chat" / "commands"
    commands.mkdir(parents=True)
    (commands / "look.md").write_text("Look at $1: !`touch made`")
    ran = program("-p", "/look here", "--output-format", "json")
    assert ran.code == 0
    session = program("sessions", "export", ran.json["session_id"]).out
    assert "The command /look, which I call, says:" in session
    assert "Look at here: [`touch made` was not run." in session
    assert not (program.folder / "made").exists()
