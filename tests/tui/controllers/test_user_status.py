"""The user's own status row: what their command is told, and what becomes of what it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.settings.schema import ScreenSettings, Settings
from rolling_chat.tui.widgets.status import UserStatus
from tests.support.tui import (
    MODEL,
    ScriptedProvider,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    type_line,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")


def chat_with(home: Path, command: str, *answers: str) -> Chat:
    settings = Settings(model=MODEL, screen=ScreenSettings(status_command=command))
    return make_chat(
        home, settings=settings, folder=home, provider=ScriptedProvider([says(one) for one in answers])
    )


async def test_the_command_is_told_of_the_session_whenever_it_has_changed(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    command = f"cat >> '{told}'; echo >> '{told}'; wc -l < '{told}' | sed 's/ //g; s/^/run /'"
    chat = chat_with(tmp_path, command, "Yes.")
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "run 1")
        await type_line(pilot, "is it so")
        await idle(pilot)
        await reads(pilot, "run 2")
        first, second = [json.loads(line) for line in told.read_text().splitlines()][:2]
        assert first["model"] == {"id": MODEL, "display_name": "gpt-4o-mini"}
        assert second["title"] == "is it so"
        assert second["context_window"]["used_tokens"] > first["context_window"]["used_tokens"]
        assert second["session_id"] == chat.session.info.id


async def test_its_colors_are_kept_and_nothing_else_that_a_terminal_obeys(tmp_path: Path) -> None:
    command = r"printf '\033[31mred\033[0m \033]0;title\007\033[2J[bold]plain[/bold]\nsecond line\n'"
    async with make_app(chat_with(tmp_path, command), tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "red ", "[bold]plain[/bold]")
        assert "second line" not in shown(pilot)
        line = screen_of(pilot).query_one(UserStatus).render()
        assert [str(span.style) for span in line.spans] == ["color(1)"]
        assert "\x1b" not in line.plain


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("echo no >&2; exit 3", "status_command failed (exit code 3)"),
        ("/no/such/program", "status_command failed (exit code 127)"),
        ("true", ""),
    ],
)
async def test_a_command_that_fails_is_a_line_and_one_that_writes_nothing_no_row(
    tmp_path: Path, command: str, line: str
) -> None:
    async with make_app(chat_with(tmp_path, command), tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "rolling: off", line)
        assert screen_of(pilot).query_one(UserStatus).display == bool(line)
