"""However a client ends, what was said is saved and nothing is left running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from acp.helpers import text_block
from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from tests.acp.conftest import Start
from tests.support.acp_client import Connected
from tests.support.patience import PATIENCE_SECONDS
from tests.support.servers import Call, Hang, OpenAIServer, Reply

# in a sandbox the numbers of processes would be its own
_FREELY = ("agent.approvals=all", "agent.sandbox=off")
_FIRST = Call("run_command", '{"command": "echo $$ > first; sleep 1000", "background": true}')
_SLEEP = Call("run_command", '{"command": "sleep 1000 & echo $! > pid; echo under way; sleep 1000"}')
_SLEEP_AFTER_FIRST = Call(
    "run_command",
    '{"command": "until [ -s first ]; do sleep 0.1; done; sleep 999 & echo $! > pid; echo under way; wait"}',
)


async def test_a_canceled_turn_stops_and_is_no_error(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Hang(Reply("begun")), Reply(calls=(_SLEEP,)), Reply("and on"))
    async with start(*_FREELY) as client:
        session = await client.new(folder)
        async with _prompted(client, session) as prompt:
            await client.editor.until(lambda: client.editor.text() == "begun")
            await client.agent.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
        await server.wait_disconnected()
        async with _prompted(client, session) as prompt:
            await _under_way(client)
            await client.agent.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
        async with _prompted(client, session) as prompt:
            assert (await prompt).stop_reason == "end_turn"
        await client.agent.cancel(session_id=session)  # nothing runs: nothing happens


async def test_cancel_in_the_middle_of_a_question_ends_it_unrun(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply(calls=(Call("run_command", '{"command": "touch made"}'),)), Reply("later"))

    async def never(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with start() as client:
        client.editor.answer = never
        session = await client.new(folder)
        async with _prompted(client, session) as prompt:
            await client.editor.until(lambda: bool(client.editor.questions))
            await client.agent.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
        ended = [one for one in client.editor.of("tool_call_update") if one.raw_output]
        assert [one.raw_output["ending"] for one in ended] == ["cancelled"]
        async with _prompted(client, session) as prompt:
            assert (await prompt).stop_reason == "end_turn"
    assert not (folder / "made").exists()


@pytest.mark.parametrize("how", ["closes stdin", "SIGTERM"])
async def test_a_client_that_goes_away_leaves_the_session_saved_and_nothing_running(
    how: str, start: Start, start_process: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply("I begin.", calls=(_FIRST, _SLEEP_AFTER_FIRST)))
    async with start_process(*_FREELY) as client:
        session = await client.new(folder)
        async with _prompted(client, session):
            await _under_way(client)
            if how == "closes stdin":
                assert client.process.stdin is not None
                client.process.stdin.close()
            else:
                client.process.send_signal(getattr(signal, how))
            assert await asyncio.wait_for(client.process.wait(), PATIENCE_SECONDS) == 0
    for name in ("pid", "first"):
        assert not _runs(int((folder / name).read_text()))
    async with start() as client:
        await client.agent.load_session(cwd=str(folder), session_id=session)
        assert client.editor.text() == "I begin."
        ended = [one.raw_output["ending"] for one in client.editor.of("tool_call_update") if one.raw_output]
        assert ended == ["complete", "cancelled"]


async def test_a_killed_agent_has_lost_nothing_that_it_showed(
    start: Start, start_process: Start, server: OpenAIServer, folder: Path
) -> None:
    words = "".join(f"word{number} " for number in range(400))
    server.then(Reply("", calls=(Call("list_files"),)), Reply(words, pause=0.002))
    async with start_process() as client:
        session = await client.new(folder)
        async with _prompted(client, session, "Say much."):
            await client.editor.until(lambda: len(client.editor.text()) > 300)
            client.process.kill()
            await client.process.wait()
            shown = client.editor.text()
    assert shown != words
    async with start() as client:
        await client.agent.load_session(cwd=str(folder), session_id=session)
        assert client.editor.text(kind="user_message_chunk") == "Say much."
        assert client.editor.text().startswith(shown.rstrip())
        assert [one.status for one in client.editor.of("tool_call_update")] == ["completed"]
        await client.agent.prompt(session_id=session, prompt=[text_block("go on")])


async def test_garbage_on_stdin_ends_nothing_and_stdout_has_nothing_else(
    start_process: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply("still here"))
    async with start_process() as client:
        assert client.process.stdin is not None
        session = await client.new(folder)
        for line in (
            b"\x00\xff", b"[]", b'"text"', b'{"jsonrpc": "2.0", "id": 7, "result": {}}',
            b'{"id": {}, "method": "session/prompt"}', b'{"id": 99, "method": "session/prompt", "params": 5}',
            b'{"id": 98, "method": "session/prompt", "params": {"sessionId": 1, "prompt": [{"type": "x"}]}}',
            b'{"id": 97, "method": "session/new", "params": {"cwd": "/", "mcpServers": [{"command": 1}]}}',
            b'{"id": 96, "method": "no/such"}', b'{"method": "session/cancel", "params": {}}',
            b'{"id": 95, "method": "_mine", "params": {"a": 1}}', b"[" * 5_000,
        ):  # fmt: skip
            client.process.stdin.write(line + b"\n")
        response = await client.agent.prompt(session_id=session, prompt=[text_block("hello?")])
        assert response.stop_reason == "end_turn"
        assert client.editor.text() == "still here"


@contextlib.asynccontextmanager
async def _prompted(client: Connected, session: str, text: str = "go") -> AsyncIterator[asyncio.Task[object]]:
    """A prompt that is being answered; nobody minds if its end never comes."""
    prompt = asyncio.create_task(client.agent.prompt(session_id=session, prompt=[text_block(text)]))
    try:
        yield prompt
    finally:
        prompt.cancel()
        await asyncio.wait({prompt})


async def _under_way(client: Connected) -> None:
    """Wait until the command has said that it is."""
    shown = client.editor.of
    await client.editor.until(
        lambda: any("under way" in str(one.content) for one in shown("tool_call_update"))
    )


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
