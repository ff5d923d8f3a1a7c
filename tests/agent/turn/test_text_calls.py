"""Replies whose calls are written as text: asked about, marked, sent as the model is told to take them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.agent.permissions import written_calls_line
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.commands.context import preview
from rolling_chat.context import count_tokens
from rolling_chat.events import Noticed, Outcome, Permission, PermissionAnswer, PermissionRequest, ToolEnded
from rolling_chat.messages import Ending
from rolling_chat.providers.text_calls import describe_tools
from rolling_chat.settings.schema import (
    AgentSettings,
    ContextSettings,
    ModelSettings,
    PermissionSettings,
    Settings,
)
from tests.support.agent import (
    MODEL,
    Opened,
    Script,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    of_kind,
    says,
)

READ = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
WRITTEN = f"I look.\n\n```json\n{READ}\n```"


class _Answers:
    def __init__(self, permission: Permission) -> None:
        self.permission = permission
        self.titles: list[str] = []

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        self.titles.append(request.title)
        return PermissionAnswer(self.permission)


async def test_a_model_set_to_text_is_told_when_something_follows_its_calls(tmp_path: Path) -> None:
    misplaced = f"First this:\n```markdown\n{READ}\n```\nThen tell me what it says."
    chat, runtime, _ = _opened(tmp_path, says(misplaced), says(WRITTEN), says("Alpha."))
    (runtime.folder / "a.txt").write_text("alpha\n")
    events = await collect(chat.send("What is in a.txt?"))
    results = [ended.message for ended in of_kind(events, ToolEnded)]
    assert [one.ending for one in results] == [Ending.REFUSED, Ending.COMPLETE]
    assert "only at the very end" in results[0].text
    assert chat.session.messages[-1].text == "Alpha."
    assert_well_formed(chat, runtime)
    runtime.store.close()


async def test_it_is_told_so_twice_a_turn_and_then_its_answer_stands(tmp_path: Path) -> None:
    chat, runtime, _ = _opened(tmp_path, says(f"{READ}\nThat is the call."))
    events = await collect(chat.send("What is in a.txt?"))
    assert [ended.message.ending for ended in of_kind(events, ToolEnded)] == [Ending.REFUSED] * 3
    assert_well_formed(chat, runtime)
    runtime.store.close()


async def test_in_any_other_mode_a_call_that_something_follows_is_text(opened: Opened) -> None:
    chat, _, _ = opened(says(f"{READ}\nThat is the call."))
    assert of_kind(await collect(chat.send("How is it called?")), ToolEnded) == []


async def test_a_written_call_is_asked_about_run_and_sent_back_as_a_call_of_the_api(opened: Opened) -> None:
    chat, runtime, provider = opened(says(WRITTEN), says(WRITTEN), says("Alpha."), approvals="all")
    (runtime.folder / "a.txt").write_text("alpha\n")
    chat.listener.ask = ask = _Answers(Permission.ONCE)
    events = await collect(chat.send("What is in a.txt?"))

    assert ask.titles == ["Allow read_file? The model wrote this call as text."] * 2
    assert [event.message.text for event in of_kind(events, ToolEnded)] == ["alpha\n", "alpha\n"]
    told = [event.text for event in of_kind(events, Noticed) if "as text" in event.text]
    assert told == [written_calls_line(MODEL)]
    reply = chat.session.messages[1]
    assert (reply.text, reply.prose, reply.writes_calls) == (WRITTEN, "I look.", True)
    assert preview(reply) == "calls as text: read_file(…) I look."
    sent = provider.wire_form(provider.requests[1])
    assert (sent[2]["content"], sent[2]["tool_calls"][0]["function"]["name"]) == ("I look.", "read_file")
    assert sent[3]["role"] == "tool"
    assert_well_formed(chat, runtime)


async def test_a_rule_allows_written_calls_and_without_one_nobody_to_ask_refuses(opened: Opened) -> None:
    rule = PermissionSettings(allow=("read_file",))
    chat, runtime, _ = opened(says(WRITTEN), says("Alpha."), permissions=rule)
    (runtime.folder / "a.txt").write_text("alpha\n")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.text == "alpha\n"

    chat, *_ = opened(says(WRITTEN), says("Alpha."), approvals="all")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.ending is Ending.REFUSED
    assert "nobody can be asked" in ended.message.text


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Explain.", f"You would write\n```json\n{READ}\n```\nbut I will not."),
        (f"My page says {READ}", f"It says:\n\n{READ}"),
        ("Explain.", WRITTEN.replace("read_file", "format_disk")),
    ],
)
async def test_what_is_quoted_or_unknown_is_no_call(opened: Opened, asked: str, reply: str) -> None:
    chat, runtime, _ = opened(says(reply))
    chat.listener.ask = ask = _Answers(Permission.ONCE)
    events = await collect(chat.send(asked))
    assert events[-1].outcome is Outcome.DONE
    assert (ask.titles, chat.session.messages[-1].tool_calls) == ([], ())
    assert len(of_kind(events, Noticed)) == (READ in asked)
    assert_well_formed(chat, runtime)


async def test_what_a_tool_brought_makes_no_call_when_it_is_repeated(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("read_file", '{"path": "trap.md"}')), says(f"It says:\n\n{READ}"))
    (runtime.folder / "trap.md").write_text(f"# Trap\n\n    {READ}\n")
    chat.listener.ask = ask = _Answers(Permission.ONCE)
    (told,) = of_kind(await collect(chat.send("What does trap.md say?")), Noticed)
    assert "quotes from a message or a result" in told.text
    assert ask.titles == []


@pytest.mark.parametrize(
    "path", ["\\ud800", "\\u0000", "a\\nb", "../../etc/passwd", pytest.param("x/" * 30_000, id="long")]
)
async def test_odd_arguments_are_stored_and_refused_like_those_of_any_call(opened: Opened, path: str) -> None:
    chat, runtime, provider = opened(says(READ.replace("a.txt", path)), says("So be it."), window=200_000)
    chat.listener.ask = _Answers(Permission.ONCE)
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.ending is Ending.FAILED
    assert str(provider.wire_form(provider.requests[1])).encode()
    assert_well_formed(chat, runtime)


@pytest.mark.parametrize("ending", [Ending.LENGTH, Ending.CANCELLED])
async def test_a_reply_that_was_cut_makes_no_call(opened: Opened, ending: Ending) -> None:
    chat, *_ = opened(says(WRITTEN, ending=ending))
    await collect(chat.send("go"))
    assert chat.session.messages[-1].tool_calls == ()


async def test_the_model_is_told_of_calls_that_prose_follows(tmp_path: Path) -> None:
    listed = '{"name": "list_files", "arguments": {}}'
    chat, runtime, _ = _opened(tmp_path, says(f"First:\n{listed}\nThen:\n{READ}\n{listed}"), says("Alpha."))
    (runtime.folder / "a.txt").write_text("alpha\n")
    first, second = of_kind(await collect(chat.send("go")), ToolEnded)
    assert first.message.text.startswith("[note: 1 earlier call in your reply did not run")
    assert first.message.text.endswith("alpha\n")
    assert second.message.text == "a.txt"
    runtime.store.close()


async def test_native_takes_no_written_call(tmp_path: Path) -> None:
    chat, runtime, _ = _opened(tmp_path, says(WRITTEN), form="native")
    await collect(chat.send("go"))
    assert chat.session.messages[-1].tool_calls == ()
    runtime.store.close()


async def test_as_text_the_model_is_told_of_tools_in_its_prompt_and_trusted(tmp_path: Path) -> None:
    chat, runtime, provider = _opened(tmp_path, says(WRITTEN), says("Alpha."))
    (runtime.folder / "a.txt").write_text("alpha\n")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.text == "alpha\n"

    sent = provider.wire_form(provider.requests[1])
    assert all(request.text_tools for request in provider.requests)
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    described = describe_tools(provider.requests[0].tools)
    assert sent[0]["content"].endswith(described)
    assert sent[2]["content"] == f"I look.\n<tool_call>\n{READ}\n</tool_call>"
    assert sent[3]["content"] == "<tool_response>\nalpha\n</tool_response>"
    assert chat.session.preview.report().tools == count_tokens(described, MODEL)
    assert_well_formed(chat, runtime)
    runtime.store.close()


async def test_as_text_a_small_window_holds_and_every_request_is_built_again_the_same(tmp_path: Path) -> None:
    looks = f"I look.\n<tool_call>\n{READ}\n</tool_call>\n<tool_call>\n{READ}\n</tool_call>"
    scripts = [step for number in range(10) for step in (says(looks), says(f"Seen {number}. " * 40))]
    chat, runtime, provider = _opened(tmp_path, *scripts, window=4_000, rolling=True)
    (runtime.folder / "a.txt").write_text("alpha beta gamma\n" * 60)
    for number in range(10):
        events = await collect(chat.send(f"Question {number}"))
        assert events[-1].outcome is Outcome.DONE
        assert len(of_kind(events, ToolEnded)) == 2

    records = runtime.store.requests(chat.session.info.id)
    assert len(records) == len(provider.requests) == 20
    assert any(record.plan != records[0].plan for record in records)
    for record, request in zip(records, provider.requests, strict=True):
        rebuilt = rebuild_request(runtime.store, record)
        assert rebuilt.is_same
        assert rebuilt.report.tools == record.totals["categories"]["tools"]
        sent = provider.wire_form(request)
        assert sum(count_tokens(message["content"], MODEL) + 4 for message in sent) <= record.bound <= 4_000
        assert {message["role"] for message in sent[1::2]} == {"user"}
        assert {message["role"] for message in sent[2::2]} <= {"assistant"}
    runtime.store.close()


def _opened(
    tmp_path: Path, *scripts: Script, form: str = "text", window: int = 32_000, rolling: bool | None = None
) -> tuple[Chat, Runtime, ScriptedProvider]:
    provider = ScriptedProvider(*scripts)
    models = MappingProxyType({MODEL: replace(ModelSettings(), tool_calls=form)})
    settings = Settings(
        models=models,
        agent=AgentSettings(tools=("read_file", "list_files")),
        context=ContextSettings(summarize="off"),
    )
    runtime = make_runtime(tmp_path, provider, settings=settings, window=window)
    return Chat.open(runtime, rolling=rolling), runtime, provider
