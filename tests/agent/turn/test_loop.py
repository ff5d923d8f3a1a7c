"""The loop: what a turn does, and what it leaves behind, told by its events and by the store."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat
from rolling_chat.events import (
    CallForming,
    Noticed,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PromptPlanned,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    TextAdded,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.protocol import (
    ErrorKind,
    Finished,
    ProviderError,
    ReasoningDelta,
    Retrying,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings, ToolContextSettings
from rolling_chat.tools import ToolResult
from tests.support.agent import (
    Gate,
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


async def test_a_plain_answer_is_stored_before_it_is_told(opened: Opened) -> None:
    chat, runtime, _ = opened(says("Hello there.", reasoning="They greet."))
    text = reasoning = ""
    kinds: list[type] = []
    async for event in chat.send("Hi"):
        kinds.append(type(event))
        match event:
            case TextAdded(_, more):
                text += more
                assert runtime.store.branch(chat.session.info.id)[-1].text.startswith(text)
            case ReasoningAdded(_, more):
                reasoning += more
            case TurnEnded():
                assert not chat.busy
            case _:
                assert chat.busy
    assert (text, reasoning) == ("Hello there.", "They greet.")
    assert list(dict.fromkeys(kinds)) == [
        TurnStarted, PromptPlanned, RequestStarted, ReasoningAdded, TextAdded, ReplyEnded, TurnEnded,
    ]  # fmt: skip
    assert [(m.role, m.text) for m in chat.session.messages] == [
        ("user", "Hi"),
        ("assistant", "Hello there."),
    ]
    assert_well_formed(chat, runtime)


async def test_a_line_says_when_little_room_is_left_for_the_answer(opened: Opened) -> None:
    chat, runtime, provider = opened(says("yes"), says("and no"), window=4_096)
    events = await collect(chat.send("word " * 1_950))
    assert [event.text for event in of_kind(events, Noticed)] == [
        "The window is nearly full: some 512 tokens are left for the answer."
    ]
    report = of_kind(events, PromptPlanned)[-1].report
    assert provider.requests
    assert report.reserve == report.reduced_reserve == 512
    record = runtime.store.requests(chat.session.info.id)[-1]
    assert record.totals["categories"]["reserve"] == 512


async def test_tools_run_in_order_and_their_results_go_back(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(call("read_file", '{"path": "a.txt"}', "c1"), call("list_files", "", "c2"), text="I look."),
        says("There is a."),
    )
    (runtime.folder / "a.txt").write_text("the letter a")
    events = await collect(chat.send("What is there?"))
    assert [(e.call.name, e.message.text) for e in of_kind(events, ToolEnded)] == [
        ("read_file", "the letter a"), ("list_files", "a.txt"),
    ]  # fmt: skip
    assert [m.role for m in provider.requests[1].messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [e.iteration for e in of_kind(events, RequestStarted)] == [1, 2]
    assert events[-1].outcome is Outcome.DONE
    assert events[-1].usage == Usage(20, 16)
    assert chat.usage == Usage(20, 16)
    assert_well_formed(chat, runtime)


async def test_a_call_that_forms_tells_its_name_and_how_long_it_is(opened: Opened) -> None:
    chat, *_ = opened(calls(call("list_files", '{"path": "."}')), says("ok"))
    forming = of_kind(await collect(chat.send("go")), CallForming)
    assert {event.name for event in forming} == {"list_files"}
    assert [event.characters for event in forming] == sorted(event.characters for event in forming)
    assert forming[-1].characters == len('{"path": "."}')


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (call("fly_away"), "There is no tool 'fly_away'. The tools are: read_file, list_files"),
        (call(""), "There is no tool ''"),
        (call("read_file", '{"path": "a'), "not valid JSON (Unterminated string"),
        (call("read_file", '"a.txt"'), "must be a JSON object. It takes one JSON object with: path (string)"),
        (call("read_file", "null"), "must be a JSON object"),
        (call("read_file", "{}"), "'path' is missing"),
        (call("read_file", '{"path": "../x"}'), "outside the working folder"),
        (call("read_file", '{"path": "\\ud800"}'), "cannot be used as a path"),
        (call("run_command", '{"command": ""}'), "'command' is missing"),
    ],
)
async def test_a_wrong_call_gets_an_answer_that_says_what_is_right(
    made: object, said: str, opened: Opened
) -> None:
    chat, runtime, provider = opened(calls(made), says("I see."), approvals="all")
    events = await collect(chat.send("go"))
    (ended,) = of_kind(events, ToolEnded)
    assert said in ended.message.text
    assert ended.message.ending is Ending.FAILED
    assert of_kind(events, TurnEnded)[0].outcome is Outcome.DONE
    assert provider.requests[1].messages[-1].text == ended.message.text
    assert_well_formed(chat, runtime)


async def test_after_the_last_iteration_one_request_without_tools_brings_the_answer(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(call("list_files", '{"path": "."}', "a")),
        calls(call("list_files", '{"path": "./"}', "b")),
        says("Enough."),
        max_tool_iterations=2,
    )
    events = await collect(chat.send("go"))
    assert [request.tool_choice for request in provider.requests] == ["auto", "auto", "none"]
    assert provider.requests[2].tools == provider.requests[0].tools
    (notice,) = of_kind(events, Noticed)
    assert "agent.max_tool_iterations" in notice.text
    assert notice.warning
    assert events[-1].outcome is Outcome.DONE
    assert chat.session.messages[-1].text == "Enough."
    assert_well_formed(chat, runtime)


async def test_a_model_that_will_not_stop_calling_is_stopped(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(call("list_files")), max_tool_iterations=1)
    events = await collect(chat.send("go"))
    assert len(provider.requests) == 2
    assert of_kind(events, ToolEnded)[-1].message.ending is Ending.REFUSED
    assert events[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_the_same_call_again_and_again_is_warned_of_and_not_stopped(opened: Opened) -> None:
    same = [calls(call("read_file", arguments)) for arguments in ('{"path":"a"}', '{ "path" : "a" }') * 2]
    chat, runtime, _ = opened(*same, says("I give up."))
    (runtime.folder / "a").write_text("x")
    events = await collect(chat.send("go"))
    results = [event.message.text for event in of_kind(events, ToolEnded)]
    assert results[:2] == ["x", "x"]
    assert [result.endswith("\nx") and "3rd time" in result for result in results[2:3]] == [True]
    assert "4th time" in results[3]
    warned = [notice.text.split("for ", 1)[1] for notice in of_kind(events, Noticed)]
    assert warned == ["the 3rd time: read_file a", "the 4th time: read_file a"]
    assert events[-1].outcome is Outcome.DONE


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [("", r"\[note: .*\]\nx\n\[exit code 0\]"), ("tail", r"x\n\[exit code 0\]\n\[note: .*\]")],
    ids=["auto", "tail"],
)
async def test_the_word_to_the_model_stands_where_a_long_result_keeps_it(
    tmp_path: Path, truncation: Any, expected: str
) -> None:
    scripts = [calls(call("run_command", '{"command": "echo x"}'))] * 3
    tools = {"run_command": ToolContextSettings(truncation=truncation)}
    settings = Settings(agent=AgentSettings(approvals="all"), context=ContextSettings(tools=tools))
    runtime = make_runtime(tmp_path, ScriptedProvider(*scripts, says("ok")), settings=settings)
    last = of_kind(await collect(Chat.open(runtime).send("go")), ToolEnded)[-1].message.text
    assert re.fullmatch(expected, last)
    runtime.store.close()


async def test_repeats_are_counted_within_a_turn(opened: Opened) -> None:
    turn = [calls(call("list_files")), calls(call("list_files")), says("ok")]
    chat, *_ = opened(*turn, *turn)
    assert not of_kind(await collect(chat.send("one")), Noticed)
    assert not of_kind(await collect(chat.send("two")), Noticed)


@pytest.mark.parametrize(
    ("approvals", "answer", "ending", "asked"),
    [
        ("ask", PermissionAnswer(Permission.ONCE), Ending.COMPLETE, 2),
        ("ask", PermissionAnswer(Permission.SESSION), Ending.COMPLETE, 1),
        ("ask", PermissionAnswer(Permission.NO), Ending.REFUSED, 2),
        ("edits", PermissionAnswer(Permission.NO), Ending.REFUSED, 2),
        ("all", None, Ending.COMPLETE, 0),
        ("read-only", PermissionAnswer(Permission.ONCE), Ending.REFUSED, 0),
        ("ask", None, Ending.REFUSED, 0),
    ],
)
async def test_a_command_runs_only_with_leave(
    approvals: str, answer: PermissionAnswer | None, ending: Ending, asked: int, opened: Opened
) -> None:
    chat, runtime, provider = opened(
        calls(
            call("run_command", '{"command": "echo one"}', "a"),
            call("run_command", '{"command": "echo two"}', "b"),
        ),
        says("ok"),
        approvals=approvals,
    )
    requests: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        requests.append(request)
        assert answer is not None
        return answer

    chat.listener.ask = ask if answer is not None else None
    events = await collect(chat.send("go"))
    assert [request.detail for request in requests] == ["echo one", "echo two"][:asked]
    assert [event.request for event in of_kind(events, PermissionAsked)] == requests
    assert [event.message.ending for event in of_kind(events, ToolEnded)] == [ending, ending]
    assert bool(of_kind(events, ToolStarted)) == (ending is Ending.COMPLETE)
    if ending is Ending.REFUSED:
        assert all(m.text.startswith("Not run: ") for m in provider.requests[1].messages[-2:])
    assert_well_formed(chat, runtime)


async def test_leave_for_a_session_ends_with_it(opened: Opened) -> None:
    turn = [calls(call("run_command", '{"command": "true"}')), says("ok")]
    chat, *_ = opened(*turn, *turn)
    asked = 0

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        nonlocal asked
        asked += 1
        return PermissionAnswer(Permission.SESSION)

    chat.listener.ask = ask
    await collect(chat.send("one"))
    chat.start_new()
    await collect(chat.send("two"))
    assert asked == 2


async def test_a_question_that_cannot_be_put_counts_as_no(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("run_command", '{"command": "touch made"}')), says("ok"))

    async def broken(_: PermissionRequest) -> PermissionAnswer:
        raise RuntimeError("no screen")

    chat.listener.ask = broken
    await collect(chat.send("go"))
    assert not (runtime.folder / "made").exists()
    assert chat.session.messages[2].ending is Ending.REFUSED


async def test_an_answer_cut_at_its_limit_can_be_gone_on_with(opened: Opened) -> None:
    chat, runtime, provider = opened(says("Once upon a", ending=Ending.LENGTH), says(" time."))
    assert (await collect(chat.send("Tell")))[-1].outcome is Outcome.CUT
    assert chat.session.messages[-1].ending is Ending.LENGTH
    assert (await collect(chat.carry_on()))[-1].outcome is Outcome.DONE
    assert provider.requests[1].messages[-1].text == "Continue exactly where you stopped."
    assert_well_formed(chat, runtime)


@pytest.mark.parametrize("arguments", ['{"command": "touch ma', ""])
async def test_a_call_cut_at_the_output_limit_is_not_run(arguments: str, opened: Opened) -> None:
    chat, runtime, _ = opened(
        calls(call("list_files", "{}", "a"), call("run_command", arguments, "b"), ending=Ending.LENGTH),
        says("ok"),
        approvals="all",
    )
    events = await collect(chat.send("go"))
    first, second = of_kind(events, ToolEnded)
    assert first.message.ending is Ending.COMPLETE
    assert "output limit in the middle of this call" in second.message.text
    assert_well_formed(chat, runtime)


BREAKS: dict[str, tuple[Script, str]] = {
    "before anything": ([ProviderError(ErrorKind.NO_NETWORK, "No network.")], "No network."),
    "in the text": (
        [TextDelta("Half of "), ProviderError(ErrorKind.INTERRUPTED, "It broke.")], "It broke.",
    ),
    "in the thoughts": (
        [ReasoningDelta("Hm "), ProviderError(ErrorKind.INTERRUPTED, "It broke.")], "It broke.",
    ),
    "in a call": (
        [ToolCallDelta(0, "c", "list_files", "{"), ProviderError(ErrorKind.INTERRUPTED, "It broke.")],
        "It broke.",
    ),
    "without an end": ([TextDelta("Half of ")], "broke off"),
    "with nothing": ([Finished(Message("assistant", ""), Usage())], "without an answer"),
    "with thoughts alone": (
        [ReasoningDelta("Hm"), Finished(Message("assistant", extras={"reasoning_content": "Hm"}), Usage())],
        "without an answer",
    ),
    "by a fault of ours": ([RuntimeError("bug")], "fault of the program"),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
async def test_an_error_ends_the_turn_in_one_line_and_the_next_one_works(name: str, opened: Opened) -> None:
    script, line = BREAKS[name]
    chat, runtime, provider = opened(script, says("Now it works."))
    events = await collect(chat.send("go"))
    assert events[-1].outcome in {Outcome.FAILED, Outcome.BROKEN}
    assert line in events[-1].error
    assert "\n" not in events[-1].error
    assert provider.open_streams == 0
    assert_well_formed(chat, runtime)
    came = "".join(step.text for step in script if isinstance(step, TextDelta | ReasoningDelta))
    if came:
        assert chat.session.messages[-1].ending is Ending.FAILED
        assert came in (
            chat.session.messages[-1].text,
            (chat.session.messages[-1].extras or {}).get("reasoning_content"),
        )
    else:
        assert [m.role for m in chat.session.messages] == ["user"]
    assert runtime.store.requests(chat.session.info.id)[0].error == events[-1].error or "fault" in line
    assert (await collect(chat.send("again")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_a_failed_turn_can_be_sent_again_as_it_was(opened: Opened) -> None:
    chat, runtime, provider = opened([ProviderError(ErrorKind.THROTTLED, "Wait.")], says("Here."))
    await collect(chat.send("go"))
    events = await collect(chat.carry_on())
    assert events[-1].outcome is Outcome.DONE
    assert [m.text for m in provider.requests[1].messages[1:]] == ["go"]
    assert_well_formed(chat, runtime)


async def test_a_retry_is_told(opened: Opened) -> None:
    chat, *_ = opened([Retrying(1, 3, 0.0, "throttled"), *says("ok")])
    assert RetryWaiting(1, 3, 0.0, "throttled") in await collect(chat.send("go"))


async def test_a_refusal_as_too_long_is_told_apart(opened: Opened) -> None:
    chat, runtime, _ = opened([ProviderError(ErrorKind.TOO_LONG, "Too long: 9 of 8.", limit=8, requested=9)])
    ended = (await collect(chat.send("go")))[-1]
    assert (ended.outcome, ended.error) == (Outcome.FULL, "Too long: 9 of 8.")
    assert_well_formed(chat, runtime)


async def test_what_does_not_fit_is_not_sent_and_goes_on_once_rolling_is_on(opened: Opened) -> None:
    chat, runtime, provider = opened(says("long " * 2_000), says("Short."), window=8_000)
    await collect(chat.send("one"))
    chat.session.overrides.set_rolling(False)
    events = await collect(chat.send("word " * 2_000))
    assert events[-1].outcome is Outcome.FULL
    assert events[-1].error.startswith("Cannot fit request within context limit.")
    assert len(provider.requests) == 1
    assert not chat.session.preview.report().within_budget
    assert_well_formed(chat, runtime)
    chat.session.overrides.set_rolling(True)
    assert chat.session.preview.report().within_budget
    events = await collect(chat.carry_on())
    assert events[-1].outcome is Outcome.DONE
    assert chat.session.messages[-1].text == "Short."
    assert [m.text[:5] for m in provider.requests[1].messages][-1] == "word "
    assert_well_formed(chat, runtime)


async def test_every_request_is_logged_with_what_it_was_and_what_came_back(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(call("list_files")), says("ok", tokens=321))
    await collect(chat.send("go"))
    first, second = runtime.store.requests(chat.session.info.id)
    assert first.head == chat.session.messages[0].id
    assert second.head == chat.session.messages[2].id
    assert second.usage == Usage(321, 2)
    assert first.wire_hash != second.wire_hash
    assert len(second.wire_hash) == 64
    assert second.bound >= second.estimated > 0
    assert second.totals["bound"] == second.bound
    assert json.dumps(second.plan)
    assert runtime.store.state(chat.session.info.id).plan == second.plan
    assert provider.requests[1].previous_length == len(provider.requests[0].messages)


async def test_halves_of_a_character_are_joined_and_lone_ones_replaced(opened: Opened) -> None:
    pieces = ["ok \ud83d", "\ude00 and \udc00", "\ud83d"]
    whole = "".join(pieces)
    chat, runtime, _ = opened(
        [*(TextDelta(piece) for piece in pieces), Finished(Message("assistant", whole), Usage())]
    )
    events = await collect(chat.send("bad \udcff bytes"))
    assert chat.session.messages[0].text == "bad \ufffd bytes"
    assert chat.session.messages[1].text == "ok 😀 and \ufffd\ufffd"
    assert "".join(e.text for e in of_kind(events, TextAdded)) == "ok 😀 and \ufffd"
    assert_well_formed(chat, runtime)


async def test_text_is_joined_into_few_batches(opened: Opened) -> None:
    chat, *_ = opened(says("x" * 8_000))
    events = of_kind(await collect(chat.send("go")), TextAdded)
    assert "".join(event.text for event in events) == "x" * 8_000
    assert len(events) < 500  # of 2,000 deltas


async def test_a_tool_that_swallows_the_stop_does_not_keep_the_turn_alive(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, provider = opened(
        calls(call("list_files", "{}", "a"), call("run_command", '{"command": "true"}', "b")), says("no")
    )

    async def swallow(*_: object) -> object:
        chat.stop()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return ToolResult("done all the same")
        raise AssertionError

    monkeypatch.setattr("rolling_chat.tools.list_files.ListFiles.run", swallow)
    events = await collect(chat.send("go"))
    assert events[-1].outcome is Outcome.CANCELLED
    assert [m.ending for m in chat.session.messages[2:]] == [Ending.COMPLETE, Ending.CANCELLED]
    assert len(provider.requests) == 1
    assert_well_formed(chat, runtime)


async def test_a_tool_that_breaks_is_a_failed_result(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> object:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr("rolling_chat.tools.list_files.ListFiles.run", broken)
    chat, runtime, _ = opened(calls(call("list_files")), says("ok"))
    await collect(chat.send("go"))
    assert chat.session.messages[2].text == "list_files broke: ZeroDivisionError. Try another way."
    assert_well_formed(chat, runtime)


async def test_two_calls_with_one_id_are_both_answered(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(call("list_files"), call("read_file", '{"path": "a"}')), says("ok")
    )
    (runtime.folder / "a").write_text("x")
    assert (await collect(chat.send("go")))[-1].outcome is Outcome.DONE
    sent = provider.wire_form(provider.requests[1])
    assert len({m["tool_call_id"] for m in sent if m["role"] == "tool"}) == 2


async def test_the_first_delta_comes_at_once_and_the_end_waits_for_nothing(opened: Opened) -> None:
    gate = Gate()
    chat, *_ = opened(
        [TextDelta("A"), gate, *says("BC")[:-1], Finished(Message("assistant", "ABC"), Usage())]
    )
    seen = []
    async for event in chat.send("go"):
        if isinstance(event, TextAdded):
            seen.append(event.text)
            gate.opened.set()
    assert seen == ["A", "BC"]
