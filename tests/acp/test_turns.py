"""A turn in an editor: what it is shown while the model answers and tools run, and how it ends."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from acp import RequestError
from acp.helpers import (
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)
from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from tests.acp.conftest import KEY, Start
from tests.support.acp_client import chosen
from tests.support.pictures import png
from tests.support.servers import Break, Call, Fail, Hang, OpenAIServer, Reply


async def test_an_answer_is_streamed_with_thoughts_calls_plan_gauge_and_title(
    start_process: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "a.txt").write_text("one\ntwo\n")
    todo = '{"items": ["[x] read", "[>] write", "[ ] test"]}'
    server.then(
        Reply(
            "I look.", reasoning="Let me see.", calls=(Call("read_file", '{"path": "a.txt", "start": 2}'),)
        ),
        Reply("", calls=(Call("todo", todo), Call("read_file", '{"path": "../secret"}'))),
        Reply("It has **two** lines."),
    )
    async with start_process() as client:
        session = await client.new(folder)
        response = await client.agent.prompt(session_id=session, prompt=[text_block("How many lines?")])
        editor = client.editor
        assert response.stop_reason == "end_turn"
        assert editor.text() == "I look.It has **two** lines."
        assert editor.text(kind="agent_thought_chunk").strip() == "Let me see."
        kinds = [update.session_update for _, update in editor.updates]
        assert kinds[0] == "available_commands_update"
        begun = list(editor.of("tool_call"))
        assert [(one.title, one.kind, one.status) for one in begun] == [
            ("read_file a.txt start=2", "read", "pending"),
            ("todo 1/3 done: write", "think", "pending"),
            ("read_file ../secret", "read", "pending"),
        ]
        assert len({one.tool_call_id for one in begun}) == 3
        assert [(place.path, place.line) for place in begun[0].locations] == [(str(folder / "a.txt"), 2)]
        assert begun[0].raw_input == {"path": "a.txt", "start": 2}
        ended = [one for one in editor.of("tool_call_update") if one.status != "in_progress"]
        assert [one.status for one in ended] == ["completed", "completed", "failed"]
        assert "two" in ended[0].content[0].content.text
        assert ended[0].raw_output["ending"] == "complete"
        (plan,) = editor.of("plan")
        assert [(entry.content, entry.status) for entry in plan.entries] == [
            ("read", "completed"), ("write", "in_progress"), ("test", "pending"),
        ]  # fmt: skip
        (title,) = editor.of("session_info_update")
        assert title.title == "How many lines?"
        gauge = list(editor.of("usage_update"))
        assert gauge[-1].used > gauge[0].used
        assert gauge[-1].size == 1_047_576
        assert gauge[-1].cost.amount > 0
        assert gauge[-1].cost.currency == "USD"


async def test_two_sessions_answer_side_by_side_and_a_second_prompt_in_one_is_refused(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    other = folder / "other"
    other.mkdir()
    server.then(Hang(Reply("slow")), Reply("fast"))
    async with start() as client:
        first, second = await client.new(folder), await client.new(other)
        slow = asyncio.create_task(client.agent.prompt(session_id=first, prompt=[text_block("one")]))
        await client.editor.until(lambda: client.editor.text(first) == "slow")
        with pytest.raises(RequestError, match="still being answered"):
            await client.agent.prompt(session_id=first, prompt=[text_block("two")])
        done = await client.agent.prompt(session_id=second, prompt=[text_block("three")])
        assert done.stop_reason == "end_turn"
        assert client.editor.text(second) == "fast"
        await client.agent.cancel(session_id=first)
        assert (await slow).stop_reason == "cancelled"


async def test_an_answer_at_its_limit_stops_for_max_tokens(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply("half of", finish_reason="length"))
    async with start() as client:
        session = await client.new(folder)
        response = await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        assert response.stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (Fail(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}), "key"),
        (Break(Reply("It is broken off in the middle"), pieces=2), "broke off"),
    ],
)
async def test_a_failed_turn_is_one_line_and_the_session_goes_on(
    step: Fail | Break, line: str, start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(step, Reply("now"))
    async with start("agent.retry_minutes=0") as client:
        session = await client.new(folder)
        with pytest.raises(RequestError) as error:
            await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        assert line in str(error.value)
        assert "\n" not in str(error.value)
        again = await client.agent.prompt(session_id=session, prompt=[text_block("again")])
        assert again.stop_reason == "end_turn"
        assert client.editor.text().endswith("now")


async def test_files_come_by_name_and_as_the_editor_has_them_and_pictures_as_they_are(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "saved.py").write_text("".join(f"line {number}\n" for number in range(1, 30)))
    (folder / "open.py").write_text("what is on disk\n")
    picture = png(2, 2)
    server.then(Reply("seen"))
    async with start() as client:
        session = await client.new(folder)
        opened = embedded_text_resource(f"file://{folder}/open.py", "what the editor has\n")
        await client.agent.prompt(
            session_id=session,
            prompt=[
                text_block("Compare"),
                resource_link_block("saved.py", f"file://{folder}/saved.py#L3:4"),
                text_block("with"),
                resource_block(opened),
                resource_link_block("docs", "https://example.org/x"),
                image_block(base64.b64encode(picture).decode(), "image/png"),
            ],
        )
    said, sent = server.requests[0].messages[-1]["content"]
    assert (
        "Compare @saved.py:3-4 with @open.py docs <https://example.org/x> @pasted-picture-1.png"
        in said["text"]
    )
    assert "line 3\nline 4\n" in said["text"]
    assert "line 5" not in said["text"]
    assert "what the editor has" in said["text"]
    assert "what is on disk" not in said["text"]
    assert base64.b64encode(picture).decode() in sent["image_url"]["url"]


async def test_a_large_file_from_the_editor_is_asked_about_and_can_be_read_in_pieces(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    large = "".join(f"line {number} of a long file\n" for number in range(20_000))
    server.then(Reply("small"))

    async def in_pieces(asked: ToolCallUpdate, offers: list[PermissionOption]) -> RequestPermissionResponse:
        return chosen("in pieces")

    async with start() as client:
        client.editor.answer = in_pieces
        session = await client.new(folder)
        block = resource_block(embedded_text_resource(f"file://{folder}/large.txt", large))
        await client.agent.prompt(session_id=session, prompt=[text_block("Sum up"), block])
        ((asked, offers),) = client.editor.questions
        assert asked.content[0].content.text == "```\n@large.txt\n```"
        assert [offer.option_id for offer in offers] == ["whole", "in pieces", "name only", "not sent"]
    said = server.requests[-1].messages[-1]["content"]
    assert "read it in pieces" in said
    assert len(said) < 1_000


async def test_a_key_of_the_user_s_is_never_sent_along(
    start: Start, server: OpenAIServer, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "home" / ".ssh" / "id_rsa"
    async with start() as client:
        secret.parent.mkdir()
        secret.write_text("PRIVATE KEY")
        session = await client.new(folder)
        block = resource_block(embedded_text_resource(f"file://{secret}", "PRIVATE KEY"))
        with pytest.raises(RequestError, match="may hold keys or passwords"):
            await client.agent.prompt(session_id=session, prompt=[text_block("look"), block])
    assert not server.requests


async def test_controls_from_model_and_tools_are_shown_and_not_sent(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "evil.txt").write_text("\x1b]0;pwned\x07 ``` [x](http://evil)\n")
    call = Call("read_file", '{"path": "evil.txt", "note": "\\u001b[31m"}')
    server.then(Reply("red \x1b[31m", calls=(call,)), Reply("done \u202e"))
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        everything = "".join(update.model_dump_json() for _, update in client.editor.updates)
        assert "\\u001b" not in everything
        assert "\x1b" not in everything
        assert "\u202e" not in everything
        assert client.editor.text() == "red ␛[31mdone <U+202E>"
        (result,) = [one for one in client.editor.of("tool_call_update") if one.status == "completed"]
        assert result.content[0].content.text.startswith("````\n")


async def test_a_conversation_that_does_not_fit_asks_before_anything_is_left_out(
    start: Start, folder: Path
) -> None:
    async with OpenAIServer(lambda _: Reply("word " * 1_500), key=KEY) as server:
        small = ("context.max_context_tokens=8000", "context.summarize=off")
        async with start(*small, OPENAI_BASE_URL=server.api_base) as client:
            session, response = await client.new(folder), None
            while not client.editor.questions:
                said = [text_block("more " * 300)]
                response = await client.agent.prompt(session_id=session, prompt=said)
            assert response is not None
            assert response.stop_reason == "end_turn"
            ((asked, offers),) = client.editor.questions
            assert asked.title == "The conversation no longer fits"
            assert [offer.kind for offer in offers] == ["allow_once", "reject_once"]
            options = list(client.editor.of("config_option_update"))[-1].config_options
            assert next(one.current_value for one in options if one.id == "rolling_context") == "on"
    assert len(server.requests) > 2
    assert not any(request.refused for request in server.requests)
