"""Slash commands in an editor: those that make sense there, what they show, and what they ask."""

from __future__ import annotations

from pathlib import Path

from acp.helpers import text_block
from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from rolling_chat.acp.commands import OFFERED, available_commands
from rolling_chat.commands import all_commands
from tests.acp.conftest import Start
from tests.support.acp_client import Connected, chosen
from tests.support.servers import Call, OpenAIServer, Reply


def test_every_command_that_is_offered_exists() -> None:
    names = [command.name for command in all_commands()]
    assert [one.name for one in available_commands()] == list(OFFERED)
    assert [name for name in names if name in OFFERED] == list(OFFERED)


async def test_commands_answer_as_text_and_change_the_session(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    write = Call("write_file", '{"path": "a.txt", "content": "new\\n"}')
    server.then(Reply(calls=(write,)), Reply("written"), Reply("again"), Reply("heard"))
    async with start("agent.approvals=edits") as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("write it")])
        assert "system prompt" in await _said(client, session, "/context")
        assert "answers" in await _said(client, session, "/cost")
        assert "+new" in await _said(client, session, "/diff")
        assert "a.txt" in await _said(client, session, "/files")
        assert "Rolling context is on" in await _said(client, session, "/rolling-context on")
        assert "called 'My title' now" in await _said(client, session, "/rename My title")
        assert [one.title for one in client.editor.of("session_info_update")][-1] == "My title"
        assert "gpt-5.4" in await _said(client, session, "/model")
        assert "works in the terminal only" in await _said(client, session, "/theme")
        assert "no command /wat" in await _said(client, session, "/wat")
        assert await _said(client, session, "/retry") != ""
        assert client.editor.text().rstrip().endswith("again")
        # only the terminal has a shortcut that runs commands
        assert "heard" in await _said(client, session, "!ls")
    assert len(server.requests) == 4


async def test_undo_asks_about_files_and_shows_the_message_again(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    write = Call("write_file", '{"path": "a.txt", "content": "new\\n"}')
    server.then(Reply(calls=(write,)), Reply("written"))

    async def both(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen(next(one.option_id for one in offers if one.name.startswith("Both")))

    async with start("agent.approvals=edits") as client:
        client.editor.answer = both
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("write it")])
        assert (folder / "a.txt").exists()
        said = await _said(client, session, "/undo")
        assert "Took back turn 1" in said
        assert "```\nwrite it\n```" in said
        assert "prompt box" not in said
        assert not (folder / "a.txt").exists()


async def _said(client: Connected, session: str, command: str) -> str:
    before = len(client.editor.text())
    response = await client.agent.prompt(session_id=session, prompt=[text_block(command)])
    assert response.stop_reason == "end_turn"
    return client.editor.text()[before:]


async def test_a_user_s_own_command_is_offered_sent_and_asks_for_what_it_runs(
    start: Start, server: OpenAIServer, folder: Path, tmp_path: Path
) -> None:
    server.then(Reply("reviewed"))
    async with start() as client:
        commands = tmp_path / "home" / "rolling-chat" / "commands"
        commands.mkdir(parents=True)
        (commands / "review.md").write_text("Review $ARGUMENTS. It has !`wc -l a.txt`")
        (folder / "a.txt").write_text("one\n")
        session = await client.new(folder)
        await client.editor.until(lambda: any(client.editor.of("available_commands_update")))
        (offered,) = client.editor.of("available_commands_update")
        assert "review" in [one.name for one in offered.available_commands]
        assert "reviewed" in await _said(client, session, "/review a.txt")
        ((asked, _),) = client.editor.questions
        assert asked.content[0].content.text == "```\nwc -l a.txt\n```"
        assert "for /review" in asked.content[1].content.text
    assert "1 a.txt" in str(server.requests[-1].messages[-1])
