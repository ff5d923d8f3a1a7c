"""Tasks: a second agent with a context of its own, permitted, counted and stopped with the first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.turn.tasks import MAX_TASKS
from rolling_chat.events import (
    Noticed,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    ReplyEnded,
    SpendingQuestion,
    TaskEvent,
    TextAdded,
    ToolEnded,
    ToolProgress,
    TurnEnded,
)
from rolling_chat.messages import SHOWN, Ending, Message, ToolCall, Usage
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request, TextDelta
from rolling_chat.sessions.records import SessionInfo, StoreError
from rolling_chat.sessions.sqlite.store import SqliteStore
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.schema import AgentSettings, Settings
from rolling_chat.task_record import record_in
from rolling_chat.tools.background import BACKGROUND
from tests.support.agent import (
    MODEL,
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

READING = ["read_file", "list_files", "search_files", "outline", "fetch_url"]


def task(prompt: str = "find the callers", id: str = "t1", **more: object) -> ToolCall:
    return call("task", json.dumps({"prompt": prompt, **more}), id)


def command(text: str, id: str = "c1") -> ToolCall:
    return call("run_command", json.dumps({"command": text}), id)


def offered(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


class ProviderByPrompt(ScriptedProvider):
    """Answers each conversation by scripts of its own, chosen by the first word of its first user message."""

    def __init__(self, **scripts: Sequence[Script]) -> None:
        super().__init__()
        self.by_word = {word: ScriptedProvider(*of_word) for word, of_word in scripts.items()}
        self.most_open = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        self.requests.append(request)
        first = next(one for one in request.messages if one.role == "user")
        provider = self.by_word[first.text.split()[0]]
        async for delta in provider.stream(request):
            self.most_open = max(self.most_open, sum(one.open_streams for one in self.by_word.values()))
            yield delta


def answering(chat: Chat, *answers: PermissionAnswer) -> list[PermissionRequest]:
    """Answer the chat's questions one after the other; return the list that collects them."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return answers[len(asked) - 1]

    chat.listener.ask = ask
    return asked


def task_result(events: Sequence[object]) -> Message:
    (ended,) = [event for event in events if isinstance(event, ToolEnded) and event.call.name == "task"]
    return ended.message


async def test_the_model_gets_the_answer_and_nothing_else_of_the_task(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(task()), calls(call("read_file", '{"path": "a.py"}')), says("In a.py, line 1."), says("Thanks.")
    )
    (runtime.folder / "a.py").write_text("parse()\n")
    events = await collect(chat.send("who calls parse?"))
    result = task_result(events)
    assert (result.text, result.ending) == ("In a.py, line 1.", Ending.COMPLETE)
    assert [message.role for message in chat.session.messages] == ["user", "assistant", "tool", "assistant"]
    first = provider.requests[1]
    assert [one.text.partition("\n")[0] for one in first.messages[1:]] == ["find the callers"]
    assert "your last reply" in first.messages[-1].text
    assert offered(first) == [*READING, "recall"]
    assert_well_formed(chat, runtime)


async def test_the_conversation_of_a_task_is_kept_and_found_but_not_listed(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(task()), says("Nobody calls the zebra."), says("Thanks."))
    events = await collect(chat.send("go"))
    record = record_in(task_result(events))
    assert record is not None
    assert (record.model, record.requests, record.window) == (MODEL, 1, 32_000)
    kept = runtime.store.session(record.session)
    assert (kept.title, kept.task_of) == ("Task: find the callers", chat.session.info.id)
    assert [one.text for one in runtime.store.branch(kept.id)] == [
        "find the callers", "Nobody calls the zebra.",
    ]  # fmt: skip
    assert [one.id for one in runtime.store.sessions()] == [chat.session.info.id]
    assert runtime.store.newest(str(runtime.folder)).id == chat.session.info.id
    hits = {hit.session_id: hit.title for hit in runtime.store.search("zebra")}
    assert hits[kept.id] == "Task: find the callers"


async def test_what_was_said_in_a_task_can_be_read_and_gone_on_with_in_a_copy(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(task()), says("Nobody."), says("Thanks."))
    record = record_in(task_result(await collect(chat.send("go"))))
    assert record is not None
    chat.resume(record.session)
    assert [one.text for one in chat.session.messages] == ["find the callers", "Nobody."]
    with pytest.raises(ChatError, match=r"of a task is read-only\. /fork makes a copy"):
        chat.send("and now?")
    chat.fork()
    assert (await collect(chat.send("and now?")))[-1].outcome is Outcome.DONE
    assert runtime.store.newest(str(runtime.folder)).id == chat.session.info.id


async def test_the_events_of_a_task_are_those_of_a_turn_and_name_its_call(opened: Opened) -> None:
    chat, _, _ = opened(calls(task()), says("Nobody."), says("Thanks."))
    events = await collect(chat.send("go"))
    inner = of_kind(events, TaskEvent)
    assert {(event.call.id, event.session_id) for event in inner} == {("t1", inner[0].session_id)}
    assert [type(event.event).__name__ for event in inner if type(event.event).__name__ != "TextAdded"] == [
        "TurnStarted", "PromptPlanned", "RequestStarted", "ReplyEnded", "TurnEnded",
    ]  # fmt: skip
    assert (
        "".join(event.event.text for event in inner if type(event.event).__name__ == "TextAdded") == "Nobody."
    )


async def test_what_a_task_uses_counts_for_its_session_now_and_later(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(task()), says("Nobody.", tokens=1_000), says("Thanks."))
    ended = of_kind(await collect(chat.send("go")), TurnEnded)[0]
    assert ended.usage.input_tokens == 10 + 1_000 + 10
    assert chat.usage == ended.usage
    used = chat.session.usage_by_purpose()
    assert {what: (count, usage.input_tokens) for what, (count, usage, _) in used.items()} == {
        "answer": (2, 20), "task": (1, 1_000),
    }  # fmt: skip
    chat.close()
    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    assert again.usage == ended.usage


@pytest.mark.parametrize(
    ("tools", "has"),
    [(None, [*READING, "recall"]), (["run_command"], ["run_command", "recall"]), ([], ["recall"])],
)
async def test_a_task_has_the_tools_that_it_is_given(
    opened: Opened, tools: list[str] | None, has: list[str]
) -> None:
    more = {} if tools is None else {"tools": tools}
    chat, _, provider = opened(calls(task(**more)), says("Nobody."), says("Thanks."))
    await collect(chat.send("go"))
    assert offered(provider.requests[1]) == has


async def test_a_task_has_no_tool_that_its_parent_has_not_and_begins_no_other(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(task(tools=["write_file"]), task(tools=["task"], id="t2"), task("go on", "t3")),
        calls(task("deeper")), says("I did it."), says("Thanks."),
        tools=("read_file", "task"),
    )  # fmt: skip
    ended = of_kind(await collect(chat.send("go")), ToolEnded)
    assert [event.message.text for event in ended] == [
        "A task cannot have the tool 'write_file'. The tools are: read_file.",
        "A task cannot have the tool 'task'. The tools are: read_file.",
        "I did it.",
    ]
    assert offered(provider.requests[1]) == ["read_file"]
    assert "There is no tool 'task'" in provider.requests[2].messages[-1].text
    assert_well_formed(chat, runtime)


async def test_a_model_that_the_user_did_not_allow_is_sent_nothing(opened: Opened) -> None:
    chat, _, provider = opened(calls(task(model="anthropic/claude-opus-4-1")), says("Thanks."))
    result = task_result(await collect(chat.send("go")))
    assert result.text == (
        "A task cannot be given to 'anthropic/claude-opus-4-1'. The models are: none but your own."
    )
    assert (result.ending, record_in(result)) == (Ending.FAILED, None)
    assert {request.model for request in provider.requests} == {MODEL}


async def test_a_task_goes_to_a_model_that_the_user_allows(tmp_path: Path) -> None:
    other = "openai/small"
    provider = ScriptedProvider(calls(task(model=other)), says("Nobody."), says("Thanks."))
    settings = Settings(agent=AgentSettings(task_models=(other,)))
    runtime = make_runtime(tmp_path, provider, settings=settings)
    entry = runtime.catalog.lookup(MODEL)
    assert entry is not None
    one = {"mode": "chat", "litellm_provider": "openai", "supports_function_calling": True}
    runtime.catalog = ModelCatalog(
        {MODEL: {**one, "max_input_tokens": 32_000}, other: {**one, "max_input_tokens": 9_000}}
    )
    chat = Chat.open(runtime)
    record = record_in(task_result(await collect(chat.send("go"))))
    assert record is not None
    assert (record.model, record.window) == (other, 9_000)
    assert [request.model for request in provider.requests] == [MODEL, other, MODEL]
    schema = next(tool for tool in provider.requests[0].tools if tool["function"]["name"] == "task")
    assert schema["function"]["parameters"]["properties"]["model"]["enum"] == [other]
    runtime.store.close()


@pytest.mark.parametrize("permission", [Permission.ONCE, Permission.NO])
async def test_the_question_of_a_task_names_it(opened: Opened, permission: Permission) -> None:
    chat, runtime, provider = opened(
        calls(task(tools=["run_command"])), calls(command("touch here")), says("Done."), says("Thanks.")
    )
    asked = answering(chat, PermissionAnswer(permission, ""))
    events = await collect(chat.send("go"))
    (request,) = asked
    assert request.title.startswith("task 'find the callers' asks: allow run_command?")
    assert request.detail == "touch here"
    assert [
        event.event.request
        for event in of_kind(events, TaskEvent)
        if isinstance(event.event, PermissionAsked)
    ]
    assert (runtime.folder / "here").exists() is (permission is Permission.ONCE)
    refused = "the user refused this call" in provider.requests[2].messages[-1].text
    assert refused is (permission is Permission.NO)
    assert_well_formed(chat, runtime)


async def test_a_rule_made_in_a_task_holds_for_its_session(opened: Opened) -> None:
    chat, _, _ = opened(
        calls(task(tools=["run_command"])), calls(command("touch here")), says("Done."),
        calls(command("touch here")), says("Thanks."),
    )  # fmt: skip
    asked = answering(chat, PermissionAnswer(Permission.SESSION))
    ended = of_kind(await collect(chat.send("go")), ToolEnded)
    assert [event.message.ending for event in ended] == [Ending.COMPLETE, Ending.COMPLETE]
    assert len(asked) == 1
    assert [rule.text for rule in chat.session.permissions.session] == ["run_command(touch here)"]


@pytest.mark.parametrize("policy", ["plan", "read-only"])
async def test_a_task_may_do_no_more_than_its_session(opened: Opened, policy: str) -> None:
    chat, runtime, provider = opened(
        calls(task(tools=["run_command"])), calls(command("touch here")), says("No."), says("Thanks."),
        approvals=policy,
    )  # fmt: skip
    await collect(chat.send("go"))
    assert "is not allowed" in provider.requests[2].messages[-1].text
    assert not (runtime.folder / "here").exists()


async def test_a_mode_that_is_set_while_a_task_runs_holds_for_it(opened: Opened) -> None:
    gate = Gate()
    chat, runtime, provider = opened(
        calls(task(tools=["run_command"])), [gate, *calls(command("touch here"))], says("No."), says("ok"),
        approvals="all",
    )  # fmt: skip
    turn = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    chat.session.permissions.policy = "read-only"
    gate.opened.set()
    await turn
    assert "approvals are read-only" in provider.requests[2].messages[-1].text
    assert not (runtime.folder / "here").exists()


async def test_a_stop_ends_the_task_with_its_turn(opened: Opened) -> None:
    gate = Gate()
    chat, runtime, provider = opened(calls(task()), [TextDelta("I have fou"), gate])
    turn = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    chat.stop()
    chat.stop()
    events = await turn
    assert events[-1].outcome is Outcome.CANCELLED
    assert provider.open_streams == 0
    result = task_result(events)
    assert result.ending is Ending.CANCELLED
    record = record_in(result)
    assert record is not None
    assert "I have fou · cancelled" in str((result.extras or {})[SHOWN])
    last = runtime.store.branch(record.session)[-1]
    assert (last.text, last.ending) == ("I have fou", Ending.CANCELLED)
    assert runtime.store.claim(record.session) is None
    assert_well_formed(chat, runtime)


async def test_a_stop_ends_a_command_of_the_task(opened: Opened) -> None:
    chat, runtime, _ = opened(
        calls(task(tools=["run_command"])), calls(command("touch began; sleep 600")), approvals="all"
    )
    seen = []
    async for event in chat.send("go"):
        seen.append(event)
        if isinstance(event, TaskEvent) and type(event.event).__name__ == "ToolStarted":
            chat.stop()
    assert seen[-1].outcome is Outcome.CANCELLED
    record = record_in(task_result(seen))
    assert record is not None
    assert runtime.store.branch(record.session)[-1].ending is Ending.CANCELLED
    assert_well_formed(chat, runtime)


async def test_a_failure_of_the_model_is_a_result_and_the_turn_goes_on(opened: Opened) -> None:
    refused = ProviderError(ErrorKind.BAD_KEY, "The key was refused.")
    chat, runtime, provider = opened(calls(task()), [TextDelta("I look"), refused], says("Then I do it."))
    events = await collect(chat.send("go"))
    result = task_result(events)
    assert result.ending is Ending.FAILED
    assert result.text == "The task failed: The key was refused.\nIt had said:\nI look"
    assert events[-1].outcome is Outcome.DONE
    assert provider.requests[2].messages[-1].text == result.text
    assert_well_formed(chat, runtime)


async def test_a_task_answers_when_its_requests_are_used_up(opened: Opened) -> None:
    reading = calls(call("list_files"))
    chat, runtime, provider = opened(
        calls(task()), reading, reading, says("That is all I know."), says("Thanks."), max_tool_iterations=2
    )
    events = await collect(chat.send("go"))
    assert task_result(events).text == "That is all I know."
    assert provider.requests[3].tool_choice == "none"
    lines = [event.text for event in of_kind(events, Noticed)]
    assert lines[0].startswith("task 'find the callers': The model called tools 2 times over")
    assert_well_formed(chat, runtime)


PRICED = {
    "mode": "chat", "litellm_provider": "openai", "max_input_tokens": 32_000,
    "supports_function_calling": True, "input_cost_per_token": 1e-5, "output_cost_per_token": 1e-5,
}  # fmt: skip


def _costly(tmp_path: Path, provider: ScriptedProvider, limit: float) -> Chat:
    settings = Settings(agent=AgentSettings(max_cost_session=limit))
    runtime = make_runtime(tmp_path, provider, settings=settings)
    runtime.catalog = ModelCatalog({MODEL: PRICED})
    return Chat.open(runtime)


def _costs(script: Script, cost: float) -> Script:
    *rest, last = script
    assert isinstance(last, Finished)
    return [*rest, replace(last, usage=replace(last.usage, cost=cost))]


async def test_a_ceiling_of_the_session_holds_in_its_tasks(tmp_path: Path) -> None:
    reading = calls(call("list_files"))
    provider = ScriptedProvider(_costs(calls(task()), 0.3), _costs(reading, 0.3), says("no"))
    chat = _costly(tmp_path, provider, 0.6)
    asked: list[str] = []

    async def ask(question: SpendingQuestion) -> bool:
        asked.append(question.line)
        return False

    chat.listener.ask_spending = ask
    events = await collect(chat.send("go"))
    assert len(provider.requests) == 2
    assert asked[0].startswith("task 'find the callers': This session has cost $0.60, and the next")
    assert task_result(events).text.startswith("The task failed: Not sent: this session has cost $0.60")
    assert events[-1].outcome is Outcome.FAILED  # of the session's own next request
    assert chat.session.usage_by_purpose()["task"][1].cost == pytest.approx(0.3)


async def test_requests_side_by_side_do_not_pass_a_ceiling_together(tmp_path: Path) -> None:
    gate = Gate()
    provider = ProviderByPrompt(
        go=[calls(task("one"), task("two", "t2")), says("ok")],
        one=[[gate, *_costs(says("first"), 0.2)]],
        two=[_costs(says("second"), 0.2)],
    )
    chat = _costly(tmp_path, provider, 0.1)  # one request may cost some 7 cents
    asked: list[str] = []

    async def ask(question: SpendingQuestion) -> bool:
        asked.append(question.line)
        gate.opened.set()
        return False

    chat.listener.ask_spending = ask
    events = await collect(chat.send("go"))
    texts = [event.message.text for event in of_kind(events, ToolEnded)]
    assert texts[0] == "first"
    assert texts[1].startswith("The task failed: Not sent")
    assert asked[0].startswith("task 'two': ")


async def test_tasks_that_only_read_run_side_by_side(tmp_path: Path) -> None:
    gates = Gate(), Gate()
    provider = ProviderByPrompt(
        go=[calls(task("one"), task("two", "t2")), says("ok")],
        one=[[gates[0], *says("first")]],
        two=[[gates[1], *says("second")]],
    )
    runtime = make_runtime(tmp_path, provider)
    chat = Chat.open(runtime)
    turn = asyncio.create_task(collect(chat.send("go")))
    for gate in gates:
        await gate.reached.wait()
    gates[1].opened.set()
    gates[0].opened.set()
    ended = of_kind(await turn, ToolEnded)
    assert [event.message.text for event in ended] == ["first", "second"]
    assert_well_formed(chat, runtime)
    runtime.store.close()


async def test_tasks_that_change_something_run_one_after_the_other(tmp_path: Path) -> None:
    both = {"tools": ["write_file"]}
    provider = ProviderByPrompt(
        go=[calls(task("one", **both), task("two", "t2", **both)), says("ok")],
        one=[says("first")], two=[says("second")],
    )  # fmt: skip
    runtime = make_runtime(tmp_path, provider)
    await collect(Chat.open(runtime).send("go"))
    assert provider.most_open == 1
    runtime.store.close()


async def test_a_server_with_one_slot_gets_one_task_at_a_time(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(3)]
    provider = ProviderByPrompt(
        go=[calls(*(task(name, name) for name in names)), says("ok")],
        **{name: [says(name)] for name in names},
    )
    runtime = make_runtime(tmp_path, provider)
    chat = Chat.open(runtime, address="http://127.0.0.1:9/v1")
    events = await collect(chat.send("go"))
    assert [event.message.text for event in of_kind(events, ToolEnded)] == names
    assert provider.most_open == 1
    assert [event.newest for event in of_kind(events, ToolProgress)] == [
        "waits until another task is done"
    ] * 2
    runtime.store.close()


async def test_only_a_few_tasks_run_at_once(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(MAX_TASKS + 2)]
    gates = {name: Gate() for name in names}
    provider = ProviderByPrompt(
        go=[calls(*(task(name, name) for name in names)), says("ok")],
        **{name: [[gate, *says(name)]] for name, gate in gates.items()},
    )
    runtime = make_runtime(tmp_path, provider)
    turn = asyncio.create_task(collect(Chat.open(runtime).send("go")))
    for name in names[:MAX_TASKS]:
        await gates[name].reached.wait()
    assert sum(one.open_streams for one in provider.by_word.values()) == MAX_TASKS
    for gate in gates.values():
        gate.opened.set()
    assert [event.message.text for event in of_kind(await turn, ToolEnded)] == names
    runtime.store.close()


async def test_questions_of_tasks_side_by_side_are_asked_one_at_a_time(tmp_path: Path) -> None:
    fetch = call("fetch_url", '{"url": "https://example.com/"}')
    provider = ProviderByPrompt(
        go=[calls(task("one"), task("two", "t2")), says("ok")],
        one=[calls(fetch), says("first")],
        two=[calls(fetch), says("second")],
    )
    runtime = make_runtime(tmp_path, provider)
    chat = Chat.open(runtime)
    open_now, most = 0, 0

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        for _ in range(20):
            await asyncio.sleep(0)
        open_now -= 1
        return PermissionAnswer(Permission.NO)

    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert most == 1
    assert_well_formed(chat, runtime)
    runtime.store.close()


async def test_a_task_rolls_its_context_although_its_session_does_not(opened: Opened) -> None:
    reads = [calls(call("read_file", f'{{"path": "{number}.txt"}}')) for number in range(12)]
    chat, runtime, provider = opened(
        calls(task()), *reads, says("Read them all."), says("Thanks."), window=9_000,
        tools=("read_file", "recall", "task"),
    )  # fmt: skip
    for number in range(12):
        (runtime.folder / f"{number}.txt").write_text(f"line of {number}\n" * 900)
    events = await collect(chat.send("go"))
    assert not chat.session.rolling
    assert task_result(events).text == "Read them all."
    assert len(provider.requests) == 15
    reports = [event.event.report for event in of_kind(events, TaskEvent) if hasattr(event.event, "report")]
    assert all(report.within_budget and report.rolling for report in reports)
    assert any(report.trimmed for report in reports)


async def test_a_long_answer_is_capped_and_can_be_recalled_whole(opened: Opened) -> None:
    long = "\n".join(f"caller number {number}" for number in range(6_000))
    chat, _, provider = opened(
        calls(task()), says(long), calls(call("recall", '{"id": "r3", "mode": "tail"}')), says("ok"),
        window=200_000,
    )  # fmt: skip
    chat.session.overrides.set_rolling(True)
    events = await collect(chat.send("go"))
    sent = provider.requests[2].messages[-1].text
    assert "[truncated: kept" in sent
    assert len(sent) < len(long) / 2
    assert task_result(events).text == long
    assert "caller number 5999" in provider.requests[3].messages[-1].text


async def test_a_file_that_a_task_changed_is_undone_with_the_turn(opened: Opened) -> None:
    write = call("write_file", '{"path": "new.txt", "content": "hello"}')
    chat, runtime, _ = opened(
        calls(task(tools=["write_file"])), calls(write), says("Done."), says("Thanks."), approvals="all"
    )
    await collect(chat.send("go"))
    written = runtime.folder / "new.txt"
    assert written.read_text() == "hello"
    session = chat.session
    assert [(Path(one.path).name, one.action) for one in await session.files.states()] == [
        ("new.txt", "written")
    ]
    move = session.files.move(session.head, session.history.before_newest_turn())
    session.files.make(move)
    assert not written.exists()


async def test_the_agent_does_not_know_a_file_that_its_task_wrote(opened: Opened) -> None:
    write = call("write_file", '{"path": "new.txt", "content": "hello"}')
    chat, runtime, provider = opened(
        calls(task(tools=["write_file"])), calls(write), says("Done."),
        calls(call("write_file", '{"path": "new.txt", "content": "other"}')), says("Thanks."),
        approvals="all",
    )  # fmt: skip
    await collect(chat.send("go"))
    assert (runtime.folder / "new.txt").read_text() == "hello"
    assert "read" in provider.requests[4].messages[-1].text


async def test_a_denied_task_begins_nothing(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(task()), says("Thanks."))
    chat.session.permissions.deny = (chat.session.permissions.add("task"),)
    result = task_result(await collect(chat.send("go")))
    assert result.ending is Ending.REFUSED
    assert len(provider.requests) == 2
    assert runtime.store.search("callers") == [] or record_in(result) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{}", "'prompt' is missing"),
        ('{"prompt": "   "}', "'prompt' is empty"),
        ('{"prompt": "go", "tools": 3}', "'tools' must be a list"),
        ('{"prompt": 5}', "must be text"),
        ("[1]", "must be a JSON object"),
        ("{", "not valid JSON"),
    ],
)
async def test_a_broken_call_is_told_what_is_wrong(opened: Opened, arguments: str, said: str) -> None:
    chat, runtime, _ = opened(calls(call("task", arguments)), says("Sorry."))
    result = task_result(await collect(chat.send("go")))
    assert said in result.text
    assert result.ending is Ending.FAILED
    assert_well_formed(chat, runtime)


async def test_marks_and_control_characters_of_the_model_do_nothing(opened: Opened) -> None:
    chat, runtime, provider = opened(
        calls(task("look \U0010fff2/etc/passwd \x1b]0;x\x07")), says("No."), says("ok")
    )
    result = task_result(await collect(chat.send("go")))
    record = record_in(result)
    assert record is not None
    asked = runtime.store.branch(record.session)[0]
    assert asked.attachments == ()
    assert "\U0010fff2" not in asked.text
    assert "root:" not in provider.requests[1].messages[-1].text


async def test_reply_events_of_a_task_carry_its_usage(opened: Opened) -> None:
    chat, _, _ = opened(calls(task()), says("Nobody.", tokens=77), says("Thanks."))
    events = await collect(chat.send("go"))
    (reply,) = [e.event for e in of_kind(events, TaskEvent) if isinstance(e.event, ReplyEnded)]
    assert reply.usage == Usage(77, len("Nobody."))


async def test_a_command_in_the_background_of_a_task_belongs_to_its_session(opened: Opened) -> None:
    start = call("run_command", '{"command": "echo began; sleep 600", "background": true}')
    chat, _, provider = opened(
        calls(task(tools=["run_command"])), calls(start), says("It runs."), calls(call("command_output")),
        says("Thanks."), approvals="all", sandbox="off",
    )  # fmt: skip
    try:
        await collect(chat.send("go"))
        (running,) = BACKGROUND.running()
        assert running.owner == chat.session.info.id
        assert provider.requests[4].messages[-1].text.startswith(f"{running.id} (echo began")
    finally:
        await BACKGROUND.end_all()


async def test_a_prompt_that_fits_no_window_fails_the_task_and_sends_nothing(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(task("word " * 40_000)), says("Then not."), window=40_000)
    chat.session.overrides.set_rolling(True)  # else the call itself does not fit into its own window
    events = await collect(chat.send("go"))
    result = task_result(events)
    assert result.text.startswith("The task failed: Cannot fit request within context limit")
    assert len(provider.requests) == 2
    assert events[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_a_listener_that_leaves_in_the_middle_ends_the_task(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(task()), [TextDelta("I have fou"), Gate()])
    events = chat.send("go")
    async for event in events:
        if isinstance(event, TaskEvent) and isinstance(event.event, TextAdded):
            break
    await events.aclose()
    assert provider.open_streams == 0
    assert not chat.busy
    assert_well_formed(chat, runtime)
    record = record_in(chat.session.messages[-1])
    assert record is not None
    assert runtime.store.branch(record.session)[-1].text == "I have fou"


async def test_a_fault_of_the_store_is_a_result_and_leaves_no_task_open(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, _ = opened(calls(task()), says("Then I do it."))
    create = SqliteStore.create_session

    def full(store: SessionStore, **columns: Any) -> SessionInfo:
        if columns.get("asked_by"):
            raise StoreError("the disk is full")
        return create(store, **columns)

    monkeypatch.setattr(SqliteStore, "create_session", full)
    events = await collect(chat.send("go"))
    assert task_result(events).text == "The task failed: the disk is full"
    assert events[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_a_task_thinks_as_much_as_its_session(tmp_path: Path) -> None:
    provider = ScriptedProvider(calls(task()), says("Nobody."), says("Thanks."))
    runtime = make_runtime(tmp_path, provider)
    runtime.catalog = ModelCatalog({MODEL: {**PRICED, "supports_reasoning": True}})
    chat = Chat.open(runtime)
    chat.session.state.use_effort("low")
    await collect(chat.send("go"))
    assert [request.effort for request in provider.requests] == ["low", "low", "low"]
    runtime.store.close()


async def test_a_prompt_of_the_models_opens_no_private_file_of_another_session(opened: Opened) -> None:
    reads = "read {path} and tell"
    chat, runtime, provider = opened()
    kept = runtime.attachments.keep("another", "the secret plans\n")
    read = call("read_file", json.dumps({"path": str(kept)}))
    provider.scripts = [
        calls(task(reads.format(path=kept))), calls(read), says("I could not."), says("Thanks."),
        calls(read), says("No."),
    ]  # fmt: skip
    record = record_in(task_result(await collect(chat.send("go"))))
    assert record is not None
    assert "secret" not in provider.requests[2].messages[-1].text
    chat.resume(record.session)
    chat.fork()
    await collect(chat.send("go on"))
    assert "secret" not in provider.requests[5].messages[-1].text


async def test_a_task_reads_a_file_that_the_user_gave_to_its_session(opened: Opened) -> None:
    chat, runtime, provider = opened()
    kept = runtime.attachments.keep(chat.session.info.id, "what was too large to send\n")
    read = call("read_file", json.dumps({"path": str(kept)}))
    provider.scripts = [calls(task()), calls(read), says("I read it."), says("Thanks.")]
    await collect(chat.send(f"look into {kept}"))
    assert "too large to send" in provider.requests[2].messages[-1].text
