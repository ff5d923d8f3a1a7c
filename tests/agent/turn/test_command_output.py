"""What a command writes is told while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.agent.turn.command_output import newest_lines, watch_output
from rolling_chat.events import Event, ToolEnded, ToolProgress
from rolling_chat.messages import ToolCall
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, calls, make_runtime, says

CALL = ToolCall("c1", "run_command", "{}")


async def test_output_is_told_before_the_command_has_ended(tmp_path: Path) -> None:
    # the command goes on only when its output was told: otherwise this would never end
    command = "echo first; until [ -e go-on ]; do sleep 0.02; done; echo second"
    call = ToolCall("c1", "run_command", json.dumps({"command": command}))
    settings = Settings(model=MODEL, agent=AgentSettings(approvals="all"))
    runtime = make_runtime(tmp_path, ScriptedProvider(calls(call), says("Done.")), settings=settings)
    chat = Chat.open(runtime)
    told: list[str] = []
    async for event in chat.send("go on"):
        match event:
            case ToolProgress(_, newest, _):
                told.append(newest)
                (runtime.folder / "go-on").touch()
            case ToolEnded(_, message, _):
                assert message.text == "first\nsecond\n[exit code 0]"
    assert told[0] == "first"


async def test_a_flood_is_told_a_few_times_and_not_at_every_piece() -> None:
    events: list[Event] = []
    emitted = asyncio.Event()

    async def emit(event: Event) -> None:
        events.append(event)
        emitted.set()

    async with watch_output(CALL, emit) as watch:
        for _ in range(10_000):
            watch.hear(b"line\n" * 100)
        await emitted.wait()
    (told,) = events
    assert isinstance(told, ToolProgress)
    assert told.written == 5_000_000
    assert told.newest == "\n".join(["line"] * 8)


def test_the_newest_lines_are_safe_to_show_and_short() -> None:
    assert newest_lines(b"a\nb\n\n") == "a\nb"
    assert newest_lines(b"10 %\r50 %\r100 %\r\n") == "100 %"
    assert newest_lines(b"x" * 8_000) == f"{'x' * 400}…"
    assert "\x1b" not in newest_lines(b"\x1b[31mred\x1b[0m \xff")
