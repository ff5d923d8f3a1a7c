"""The chat of plain lines: what is read aloud, and what a number answers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from rolling_chat.agent.questions import Answer, UserQuestion
from rolling_chat.events import TextAdded
from rolling_chat.plain.event_lines import EventLines
from rolling_chat.plain.questions import ask
from rolling_chat.plain.turns import Turns
from rolling_chat.providers.errors import ErrorKind
from rolling_chat.providers.protocol import ProviderError, TextDelta
from tests.plain.conftest import CTRL_C, ScriptedConsole, converse
from tests.support.patience import PATIENCE_SECONDS
from tests.support.program import program_environment
from tests.support.tui import asking_chat, make_chat, says

FULL = ProviderError(ErrorKind.TOO_LONG, "The prompt is too long for the model.")


async def test_an_answer_is_read_line_by_line_and_the_context_after_it(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("One ", "line.\nAnother", " line."))
    lines = await converse(chat, "hello")
    at = lines.index("gpt-4o-mini says:")
    assert lines[at + 1 : at + 3] == ["One line.", "Another line."]
    assert lines[at + 3].startswith("Done in ")
    assert lines[at + 4].startswith("Context: ")
    assert lines[at + 4].endswith("Rolling off.")


@pytest.mark.parametrize(
    ("answer", "is_made"), [("1", True), ("4", False), (CTRL_C, False), ("", False), ("Once", False)]
)
async def test_only_a_number_approves(tmp_path: Path, answer: str | None, is_made: bool) -> None:
    chat = asking_chat(tmp_path)
    lines = await converse(chat, "do it", answer, CTRL_C)
    assert any(line.startswith("Question: ") for line in lines)
    assert (tmp_path / "work" / "made-by-tool").exists() == is_made
    assert ("Refused: run_command" in "\n".join(lines)) != is_made


async def test_why_not_goes_to_the_model(tmp_path: Path) -> None:
    chat = asking_chat(tmp_path)
    await converse(chat, "do it", "5", "use the other one")
    assert any("use the other one" in message.text for message in chat.session.messages)


async def test_what_is_long_is_approved_only_after_all_of_it_was_written() -> None:
    question = UserQuestion(
        "Run a command",
        "\n".join(f"line {number}" for number in range(100)),
        (
            Answer("Once", "once", approves=True),
            Answer("No", "no", escape=True),
            Answer("Unseen", "unseen", unseen=True),
        ),
    )
    console = ScriptedConsole(iter(["3", "3", "1"]))
    assert (await ask(console, question)).value == "once"
    written = console.output.getvalue()
    assert "line 99" in written
    assert written.index("1. Once") > written.index("line 99")
    unseen = ScriptedConsole(iter(["2"]))
    assert (await ask(unseen, question)).value == "unseen"


async def test_ctrl_c_stops_an_answer_and_twice_at_the_prompt_quits(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, [TextDelta("On and on.\n"), asyncio.Event()])
    console = ScriptedConsole(iter(()))
    turn = asyncio.create_task(Turns(chat, console).say("go"))
    await console.hears("On and on.")
    console.interrupt()
    await asyncio.wait_for(turn, PATIENCE_SECONDS)
    assert "Stopped after" in console.output.getvalue()
    lines = await converse(chat, CTRL_C, CTRL_C, "never read")
    assert "never read" not in "\n".join(lines)


async def test_what_does_not_fit_is_asked_about_and_gone_on_with(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("Hello."), [FULL], says("It fits."))
    lines = await converse(chat, "hello", "go", "1")
    assert "Question: The conversation no longer fits" in lines
    assert "It fits." in lines


async def test_commands_write_their_tables_as_lines_and_choices_by_number(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("Hello."))
    lines = await converse(
        chat, "hello", "/context", "/model", "", "/sessions", "1", "/nonsense", "/quit", "never"
    )
    text = "\n".join(lines)
    assert "system prompt" in text
    assert "1. " in text
    assert "There is no command /nonsense" in text
    assert "never" not in text


def test_nothing_that_a_terminal_obeys_is_written() -> None:
    console = ScriptedConsole(iter(()))
    for line in EventLines("m").lines(TextAdded("r", "\x1b[2J\x07hidden\n")):
        console.write(line)
    assert "\x1b" not in console.output.getvalue()
    assert "hidden" in console.output.getvalue()


def test_a_long_paragraph_is_read_by_sentences() -> None:
    lines = EventLines("m")
    read = [line for _ in range(40) for line in lines.lines(TextAdded("r", "Some words of a sentence. "))]
    assert len(read) > 3
    assert all(line.endswith((":", ".")) for line in read)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
async def test_the_real_program_chats_in_a_dumb_terminal(tmp_path: Path) -> None:
    import pty

    parent, child = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rolling_chat", "--plain", "--model", "demo/offline", "--no-save",
        stdin=child, stdout=child, stderr=child, cwd=tmp_path, start_new_session=True,
        env=program_environment(tmp_path, TERM="dumb"),
    )  # fmt: skip
    os.close(child)
    os.write(parent, b"hello there\n")
    seen = await asyncio.to_thread(_read_until, parent, b"Rolling off.")
    os.write(parent, b"/quit\n")
    await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
    os.close(parent)
    assert process.returncode == 0
    assert b"offline says:" in seen
    assert b"\x1b[?1049h" not in seen


def _read_until(parent: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(parent, 65_536)
    return seen
