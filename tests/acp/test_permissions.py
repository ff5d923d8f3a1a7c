"""What is shown to an editor's user is what runs, and whatever is no clear yes is a no."""

from __future__ import annotations

from pathlib import Path

from acp.helpers import resource_link_block, text_block
from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from tests.acp.conftest import Start
from tests.support.acp_client import CANCELLED, chosen
from tests.support.servers import Call, OpenAIServer, Reply


async def test_an_edit_is_shown_as_a_diff_and_a_command_whole_with_our_rules(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "a.py").write_text("one\ntwo\nthree\n")
    edit = Call("edit_file", '{"path": "a.py", "old": "two", "new": "2"}')
    server.then(Reply(calls=(edit, Call("run_command", '{"command": "cat a.py"}'))), Reply("done"))
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        (edited, _), (command, offers) = client.editor.questions
        begun = {one.tool_call_id: one for one in client.editor.of("tool_call")}
        assert begun[edited.tool_call_id].title == "edit_file a.py"
        (diff,) = edited.content
        assert (diff.path, diff.old_text, diff.new_text) == (
            str(folder / "a.py"), "one\ntwo\nthree\n", "one\n2\nthree\n",
        )  # fmt: skip
        assert command.content[0].content.text == "```\ncat a.py\n```"
        assert [(offer.name, offer.kind) for offer in offers] == [
            ("Once", "allow_once"),
            ("Always: cat * (this session)", "allow_always"),
            ("Always: cat * (this folder)", "allow_always"),
            ("No", "reject_once"),
        ]
    assert (folder / "a.py").read_text() == "one\n2\nthree\n"


async def test_always_holds_for_the_session_and_for_the_folder(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    call = Call("run_command", '{"command": "cat a.py"}')
    server.then(*(step for _ in range(4) for step in (Reply(calls=(call,)), Reply("done"))))

    async def always(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen(next(one.option_id for one in offers if "this session" in one.name))

    async def for_ever(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen(next(one.option_id for one in offers if "this folder" in one.name))

    async with start() as client:
        client.editor.answer = always
        first = await client.new(folder)
        for _ in range(2):
            await client.agent.prompt(session_id=first, prompt=[text_block("go")])
        assert len(client.editor.questions) == 1
        client.editor.answer = for_ever
        second = await client.new(folder)
        await client.agent.prompt(session_id=second, prompt=[text_block("go")])
        assert len(client.editor.questions) == 2
        third = await client.new(folder)
        await client.agent.prompt(session_id=third, prompt=[text_block("go")])
        assert len(client.editor.questions) == 2


async def test_whatever_is_no_clear_yes_runs_nothing(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    answers = ["no", "made up", "", "folder ", "error", "canceled"]
    call = Call("run_command", '{"command": "touch made"}')
    server.then(*(step for _ in answers[1:] for step in (Reply(calls=(call,)), Reply("as you wish"))))
    server.then(Reply(calls=(call,)))

    async def reply(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        answer = answers[len(client.editor.questions) - 1]
        if answer == "error":
            raise RuntimeError("the window is gone")
        return CANCELLED if answer == "canceled" else chosen(answer)

    async with start() as client:
        client.editor.answer = reply
        session = await client.new(folder)
        for answer in answers:
            response = await client.agent.prompt(session_id=session, prompt=[text_block("go")])
            assert response.stop_reason == ("cancelled" if answer == "canceled" else "end_turn")
        ended = [one for one in client.editor.of("tool_call_update") if one.raw_output]
        assert [one.status for one in ended] == ["failed"] * len(answers)
    assert not (folder / "made").exists()


async def test_what_could_be_overlooked_is_shown_as_a_code(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    call = Call("run_command", '{"command": "ls \\u202e; echo ```\\nrm -rf x"}')
    server.then(Reply(calls=(call,)), Reply("done"))

    async def refuse(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen("no")

    async with start() as client:
        client.editor.answer = refuse
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        ((asked, offers),) = client.editor.questions
        assert asked.content[0].content.text == "````\nls <U+202E>; echo ```\nrm -rf x\n````"
        assert asked.title.startswith("run_command: ls <U+202E>; echo ```␊rm -rf x")
        assert "exactly this command" in offers[1].name


async def test_a_file_outside_the_folder_is_read_only_if_the_user_says_so(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder.parent / "outside.txt").write_text("apples")
    server.then(Reply("one"), Reply("two"))
    link = resource_link_block("outside.txt", f"file://{folder.parent}/outside.txt")

    async def by_name(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen("name only")

    async with start() as client:
        session = await client.new(folder)
        client.editor.answer = by_name
        await client.agent.prompt(session_id=session, prompt=[text_block("look at"), link])
        assert "apples" not in str(server.requests[-1].messages[-1])
        assert str(folder.parent / "outside.txt") in client.editor.questions[0][0].content[0].content.text
        client.editor.answer = lambda *_: _whole()
        await client.agent.prompt(session_id=session, prompt=[text_block("look at"), link])
        assert "apples" in str(server.requests[-1].messages[-1])


async def _whole() -> RequestPermissionResponse:
    return chosen("whole")


async def test_a_second_agent_s_calls_are_shown_and_its_question_names_its_task(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    task = Call("task", '{"prompt": "make the file", "tools": ["run_command"]}')
    server.then(
        Reply(calls=(task,)),
        Reply("I make it.", calls=(Call("run_command", '{"command": "touch made"}'),)),
        Reply("It is made."),
        Reply("All done."),
    )
    async with start() as client:
        session = await client.new(folder)
        response = await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        assert response.stop_reason == "end_turn"
        ((asked, _),) = client.editor.questions
        assert "make the file" in asked.content[1].content.text
        titles = {one.tool_call_id: one.title for one in client.editor.of("tool_call")}
        assert titles[asked.tool_call_id] == "run_command touch made"
        ended = [one for one in client.editor.of("tool_call_update") if one.raw_output]
        assert [one.status for one in ended] == ["completed", "completed"]
        assert client.editor.text() == "All done."
    assert (folder / "made").exists()
