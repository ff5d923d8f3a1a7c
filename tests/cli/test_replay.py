"""`rolling-chat replay`."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.conversations import assistant, tool, user
from tests.support.program import Program, Ran, program_environment
from tests.support.prompt_rules import broken_rules
from tests.support.replay import SYSTEM, long_conversation, write_lines

DEMO = ("--model", "demo/offline")
TALK = [SYSTEM, user("one"), assistant("two"), user("three")]


@pytest.fixture(autouse=True)
def _no_model_is_set(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLING_CHAT_MODEL")


@pytest.fixture
def talk(program: Program) -> str:
    return str(write_lines(program.folder / "talk.json", TALK))


@pytest.fixture
def long(program: Program) -> str:
    lines = [{"id": name, "messages": long_conversation()} for name in ("first", "second")]
    return str(write_lines(program.folder / "long.jsonl.gz", *lines))


def rows(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_without_a_terminal_it_prints_a_row_of_json_a_request_and_nothing_else(
    program: Program, talk: str
) -> None:
    ran = program("replay", talk)
    assert ran.err == ""
    assert [(row["conversation"], row["request"], row["at_message"]) for row in rows(ran)] == [
        ("talk", 1, 2),
        ("talk", 2, 4),
    ]
    assert program("replay", talk, "--json").out == ran.out
    assert program("replay", "--format", "json", talk).out == ran.out


def test_the_window_is_the_one_given(program: Program, talk: str) -> None:
    assert {row["max_input_tokens"] for row in rows(program("replay", talk))} == {128_000}
    assert rows(program("replay", talk, "--model", "gpt-4o"))[0]["max_input_tokens"] == 128_000
    assert rows(program("replay", talk, "--max-input-tokens", "5000"))[0]["max_input_tokens"] == 5000
    capped = program("replay", talk, "--max-input-tokens", "5000", "-c", "context.max_context_tokens=3000")
    assert rows(capped)[0]["max_input_tokens"] == 3000


def test_the_reserve_is_the_one_given(program: Program) -> None:
    file = str(write_lines(program.folder / "x.json", [user("words " * 3700)]))
    small = program("replay", file, "--max-input-tokens", "5000", "--reserved-output-tokens", "0")
    assert rows(small)[0]["within_budget"]
    assert not rows(program("replay", file, "--max-input-tokens", "5000"))[0]["within_budget"]


def test_rolling_is_on_unless_this_very_run_says_no(program: Program, long: str) -> None:
    config = program.home / "rolling-chat" / "config.toml"
    config.parent.mkdir()
    config.write_text("[context]\nenabled = false\n")
    rolling = rows(program("replay", long, "--max-input-tokens", "8192"))
    assert any(row["dropped"] for row in rolling)
    assert all(row["overflow"] is None for row in rolling)
    off = rows(program("replay", long, "--max-input-tokens", "8192", "-c", "context.enabled=false"))
    assert not any(row["dropped"] or row["masked"] for row in off)
    assert off[-1]["overflow"].startswith("Cannot fit request within context limit.")


def test_prompts_come_along_and_can_be_sent(program: Program, long: str) -> None:
    ran = program("replay", long, "--max-input-tokens", "8192", "--emit-prompts")
    for row in rows(ran):
        assert broken_rules(row["messages"]) == []
        assert row["messages"][0]["role"] == "system"
        assert row["messages"][0]["content"].startswith(SYSTEM["content"])


def test_the_table_has_a_line_a_conversation_and_the_settings(program: Program, long: str) -> None:
    out = program("replay", long, "--format", "table", "--max-input-tokens", "8192").out
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["conversation", "first", "second", "all"]
    assert (
        "model unknown (name one with --model) · window 8,192 · rolling on · history cap 20,000"
        " · by settings and catalog, nothing learned" in lines
    )


def test_repairs_are_told_on_stderr(program: Program) -> None:
    file = str(
        write_lines(program.folder / "x.json", [user("one"), tool("lost", "orphan"), assistant("two")])
    )
    ran = program("replay", file, "--emit-prompts")
    assert ran.err.startswith("rolling-chat: repaired in the prompts: ")
    [row] = rows(ran)
    assert row["kept"] + row["dropped"] == row["at_message"]
    assert broken_rules(row["messages"]) == []


def test_the_picture_goes_to_its_file(program: Program, long: str) -> None:
    picture = program.folder / "tokens.svg"
    ran = program("replay", long, "--svg", str(picture), "--max-input-tokens", "8192")
    assert len(rows(ran)) == 48
    text = picture.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "long.jsonl.gz: 48 requests of 2 conversations" in text


def test_a_saved_session_is_replayed_by_the_start_of_its_id(program: Program) -> None:
    session = program("-p", "list files", *DEMO, "--output-format", "json").json["session_id"]
    [first, second] = rows(program("replay", session[:4], "--emit-prompts"))
    assert first["conversation"] == session
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert second["messages"][-1]["role"] == "tool"
    listed = program("sessions", "list", "--json").json
    assert [row["id"] for row in listed] == [session]


def test_a_saved_session_is_replayed_with_its_system_prompt_and_tools(program: Program) -> None:
    session = program("-p", "list files", *DEMO, "--output-format", "json").json["session_id"]
    replayed = [row["token_count"] for row in rows(program("replay", session))]
    sent = [program("inspect", f"{session}:{number}", "--json").json["token_count"] for number in (1, 2)]
    assert replayed == sent


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["replay"], "the following arguments are required: FILE"),
        (["replay", "nowhere.json"], "there is no file nowhere.json"),
        (["replay", "zz"], "there is no file zz"),
        (["replay", "empty"], "there is no transcript below empty"),
        (["replay", "nothing*.jsonl"], "no file is named like nothing*.jsonl"),
        (["replay", "good.json", "--output", "rows.csv"], "end its name in .jsonl, .jsonl.gz or .parquet"),
        (["replay", "good.json", "--output", "no/rows.jsonl"], "in a folder that exists"),
        (["replay", "good.json", "--output", "rows.jsonl", "--format", "table"], "ask for two things"),
        (["replay", "good.json", "--output", "rows.jsonl", "--svg", "x.svg"], "ask for two things"),
        (["replay", "good.json", "--jobs", "0"], "not a whole number above 0"),
        (["replay", "broken.jsonl"], "line 2 of broken.jsonl is not JSON"),
        (["replay", "good.json", "--json", "--format", "table"], "ask for two things at once"),
        (
            ["replay", "good.json", "--emit-prompts", "--format", "table"],
            "--emit-prompts needs --format json",
        ),
        (["replay", "good.json", "--format", "xml"], "choose from 'table', 'json'"),
        (["replay", "good.json", "--svg", "no/such/folder.svg"], "in a folder that exists"),
        (["replay", "good.json", "--max-input-tokens", "0"], "'0' is not a whole number above 0"),
        (["replay", "good.json", "--reserved-output-tokens", "-1"], "not a whole number"),
        (["replay", "good.json", "-c", "context.trim_to=7"], "context.trim_to"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(program: Program, argv: list[str], wanted: str) -> None:
    write_lines(program.folder / "good.json", TALK)
    (program.folder / "empty").mkdir()
    (program.folder / "broken.jsonl").write_text('{"messages": []}\n{oops\n')
    ran = program(*argv)
    assert wanted in ran.err
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_what_was_read_before_a_broken_line_is_printed(program: Program) -> None:
    file = program.folder / "x.jsonl"
    file.write_text(json.dumps({"id": "a", "messages": TALK}) + "\n{oops\n")
    ran = program("replay", str(file))
    assert ran.code == 2
    assert len(ran.out.splitlines()) == 2


def test_a_table_says_why_what_did_not_fit_was_refused(program: Program, long: str) -> None:
    ran = program("replay", long, "--max-input-tokens", "30", "--format", "table")
    assert "refused: 48 of 48 requests; a window of" in ran.out
    assert "the first: first, request 1: Cannot fit request" in ran.out


def test_a_transcript_in_which_no_model_was_called_is_told_so(program: Program) -> None:
    (program.folder / "x.json").write_text("[]")
    ran = program("replay", "x.json")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "rolling-chat: no model was called in x.json\n"


def test_the_developers_message_is_no_repair(program: Program) -> None:
    file = str(write_lines(program.folder / "x.json", [{"role": "developer", "content": "s"}, user("one")]))
    ran = program("replay", file, "--emit-prompts")
    assert ran.err == ""
    assert rows(ran)[0]["messages"] == [{"role": "system", "content": "s"}, user("one")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_the_output_is_no_fault_of_the_program(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "rolling_chat", "replay", "-"],
            input='[{"role": "user", "content": "x"}]',
            env=program_environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr == "rolling-chat: cannot write the output: No space left on device\n"


def test_nothing_of_a_transcript_reaches_the_terminal_raw(program: Program) -> None:
    talk = {"id": "evil\x1b]0;x\x07", "messages": [user("\x1b[2J\ud83d"), tool("\x1b[31m", "x"), user("y")]}
    file = str(write_lines(program.folder / "x.jsonl", talk))
    for argv in (["--emit-prompts"], ["--format", "table"]):
        ran = program("replay", file, *argv)
        assert ran.code == 0
        assert "\x1b" not in ran.out + ran.err


def test_the_transcript_is_left_as_it_is(program: Program, long: str) -> None:
    before = Path(long).read_bytes()
    program("replay", long, "--max-input-tokens", "8192")
    assert Path(long).read_bytes() == before
    assert len(gzip.decompress(before).splitlines()) == 2
