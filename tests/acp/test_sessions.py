"""Sessions of an editor: begun, listed, loaded with all that was said, resumed, forked, closed, changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from acp import RequestError
from acp.helpers import text_block

from tests.acp.conftest import Start
from tests.support.servers import Call, OpenAIServer, Reply


async def test_a_session_is_listed_loaded_with_its_history_and_gone_on_with(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "a.txt").write_text("one\n")
    write = Call("write_file", '{"path": "b.txt", "content": "new\\n"}')
    todo = Call("todo", '{"items": ["[x] read", "[ ] write"]}')
    server.then(
        Reply("I read.", reasoning="Hm.", calls=(Call("read_file", '{"path": "a.txt"}'), write, todo)),
        Reply("Done."),
    )
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("Read a.txt")])
        lived = _story(client.editor)
    server.then(Reply("Again."))
    async with start() as client:
        found = await client.agent.list_sessions(cwd=str(folder))
        assert [(one.session_id, one.title, one.cwd) for one in found.sessions] == [
            (session, "Read a.txt", str(folder))
        ]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", found.sessions[0].updated_at or "")
        assert not (await client.agent.list_sessions(cwd="/elsewhere")).sessions
        response = await client.agent.load_session(cwd=str(folder), session_id=session)
        assert response.modes is not None
        assert client.editor.text(kind="user_message_chunk") == "Read a.txt"
        assert _story(client.editor) == lived
        (plan,) = client.editor.of("plan")
        assert [entry.status for entry in plan.entries] == ["completed", "pending"]
        again = await client.agent.prompt(session_id=session, prompt=[text_block("And now?")])
        assert again.stop_reason == "end_turn"
    said = [message["content"] for message in server.requests[-1].messages if message["role"] == "user"]
    assert said == ["Read a.txt", "And now?"]


def _story(editor: object) -> list[tuple[object, ...]]:
    """What an editor shows of a conversation."""
    story: list[tuple[object, ...]] = []
    for _, update in editor.updates:
        match update.session_update:
            case "agent_message_chunk" | "agent_thought_chunk":
                story.append((update.session_update, update.message_id, update.content.text.rstrip()))
            case "tool_call":
                story.append(("call", update.tool_call_id, update.title, update.kind, update.raw_input))
            case "tool_call_update" if update.raw_output:
                story.append(("result", update.tool_call_id, update.status, str(update.content)))
    return story


async def test_a_resumed_session_sends_no_history_and_a_fork_leaves_the_original_alone(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply("one"), Reply("two"), Reply("three"))
    async with start() as client:
        session = await client.new(folder)
        blank = (await client.agent.fork_session(session_id=session, cwd=str(folder))).session_id
        assert blank != session
        await client.agent.prompt(session_id=session, prompt=[text_block("first")])
        fork = (await client.agent.fork_session(session_id=session, cwd=str(folder))).session_id
        assert fork != session
        await client.agent.prompt(session_id=fork, prompt=[text_block("in the copy")])
        await client.agent.close_session(session_id=fork)
        with pytest.raises(RequestError, match="No session with that id is open"):
            await client.agent.prompt(session_id=fork, prompt=[text_block("closed")])
        seen = len(client.editor.updates)
        await client.agent.resume_session(session_id=fork, cwd=str(folder))
        await client.agent.prompt(session_id=session, prompt=[text_block("in the original")])
        later = [update.session_update for _, update in client.editor.updates[seen:]]
        assert "user_message_chunk" not in later
    assert "in the copy" not in str(server.requests[-1].messages)
    assert "first" in str(server.requests[-1].messages)


async def test_a_session_goes_by_the_id_that_the_editor_knows(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply("one"), Reply("two"))
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("first")])
    known = session[-8:]  # as one of an older version has another id by now
    async with start() as client:
        await client.agent.load_session(cwd=str(folder), session_id=known)
        await client.agent.prompt(session_id=known, prompt=[text_block("second")])
        assert {name for name, _ in client.editor.updates} == {known}


async def test_mode_model_effort_and_rolling_are_options_and_a_command_changes_them_too(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    run = Call("run_command", '{"command": "touch made"}')
    server.then(Reply(calls=(run,)), Reply("refused"), Reply(calls=(run,)), Reply("made"))
    async with start() as client:
        opened = await client.agent.new_session(cwd=str(folder))
        session, options = opened.session_id, {one.id: one for one in opened.config_options or []}
        assert [one.category for one in options.values()] == [
            "mode", "model", "thought_level", "model_config",
        ]  # fmt: skip
        assert "gpt-4o" in {one.value for one in options["model"].options}
        assert opened.modes is not None
        assert [one.id for one in opened.modes.available_modes] == [
            "ask", "edits", "plan", "read-only", "all",
        ]  # fmt: skip
        await client.agent.set_session_mode(session_id=session, mode_id="plan")
        await client.agent.prompt(session_id=session, prompt=[text_block("plan it")])
        assert not (folder / "made").exists()
        changed = await client.agent.set_config_option(config_id="mode", session_id=session, value="all")
        assert {one.id: one.current_value for one in changed.config_options}["mode"] == "all"
        await client.agent.prompt(session_id=session, prompt=[text_block("do it")])
        assert (folder / "made").exists()
        assert not client.editor.questions
        modes = [one.current_mode_id for one in client.editor.of("current_mode_update")]
        assert modes == ["plan", "all"]
        for name, value in (("model", "gpt-4o"), ("rolling_context", "on")):
            changed = await client.agent.set_config_option(config_id=name, session_id=session, value=value)
            assert {one.id: one.current_value for one in changed.config_options}[name] == value
        await client.agent.set_config_option(config_id="effort", session_id=session, value="high")
        await client.agent.prompt(session_id=session, prompt=[text_block("go on")])
        assert server.requests[-1].body["model"] == "gpt-4o"
        assert "gpt-4o does not reason" in client.editor.text()
        await client.agent.prompt(session_id=session, prompt=[text_block("/mode read-only")])
        assert [one.current_mode_id for one in client.editor.of("current_mode_update")][-1] == "read-only"
        for name, value in (("model", "nobody/has-it"), ("effort", "wild"), ("mode", "x"), ("what", "x")):
            with pytest.raises(RequestError):
                await client.agent.set_config_option(config_id=name, session_id=session, value=value)


async def test_what_does_not_exist_is_one_line(start: Start, folder: Path) -> None:
    missing = str(folder / "missing")
    async with start() as client:
        agent = client.agent
        for cwd in ("relative", missing, "", "/etc/passwd", "\0"):
            with pytest.raises(RequestError, match="absolute path"):
                await agent.new_session(cwd=cwd)
        session = await client.new(folder)
        for wrong in ("nobody", "", session[:-1], "%"):
            with pytest.raises(RequestError) as error:
                await agent.load_session(cwd=str(folder), session_id=wrong)
            assert error.value.code == -32002
        with pytest.raises(RequestError, match="cursor"):
            await agent.list_sessions(cursor="x")
