"""Hooks in real turns, by real processes: what they are given, change, refuse, and cannot do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.agent.turn import sandboxing
from rolling_chat.events import (
    Noticed,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionRequest,
    Steered,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import Ending
from rolling_chat.settings.hook_settings import HookSettings
from rolling_chat.settings.load import IN_HOOK
from rolling_chat.settings.schema import AgentSettings, Settings
from rolling_chat.tools.sandbox.sandbox import SandboxProgram
from tests.support.agent import Script, ScriptedProvider, call, calls, collect, make_runtime, of_kind, says
from tests.support.hooks import answers, decides, hooked, project_hooks
from tests.support.patience import PATIENCE_SECONDS, eventually
from tests.support.sandbox import real_sandbox

RUN = calls(call("run_command", '{"command": "touch made"}'))

Opened = Callable[..., tuple[Chat, Runtime, ScriptedProvider]]


@pytest.fixture
def opened(tmp_path: Path):
    """Opens a chat with hooks in its settings."""
    runtimes: list[Runtime] = []

    def open_chat(hooks: HookSettings, *scripts: Script, **agent: Any):
        provider = ScriptedProvider(*scripts)
        settings = Settings(agent=AgentSettings(**{"sandbox": "off", **agent}), hooks=hooks)
        runtime = make_runtime(tmp_path, provider, settings=settings)
        runtimes.append(runtime)
        return Chat.open(runtime), runtime, provider

    yield open_chat
    for runtime in runtimes:
        runtime.store.close()


def lines(events: object) -> list[str]:
    return [event.text for event in of_kind(events, Noticed)]


def given(runtime: Runtime, name: str) -> dict[str, Any]:
    """What a hook wrote of its input."""
    return json.loads((runtime.folder / name).read_text())


def is_written(path: Path) -> bool:
    """Whether a hook has written a file."""
    return path.exists() and bool(path.read_text())


async def test_each_event_runs_its_hooks_with_json_on_their_input(opened: Opened) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    hooks = hooked(**{event: f"cat > {event}.json" for event in events})
    chat, runtime, _ = opened(hooks, RUN, says("Done."), approvals="all")
    await collect(chat.send("do it"))
    common = {
        "session_id": chat.session.info.id,
        "cwd": str(runtime.folder),
        "permission_mode": "bypassPermissions",
    }
    for event in events:
        found = given(runtime, f"{event}.json")
        assert found["hook_event_name"] == event
        assert common.items() <= found.items()
    assert given(runtime, "SessionStart.json")["source"] == "startup"
    assert given(runtime, "UserPromptSubmit.json")["prompt"] == "do it"
    before, after = given(runtime, "PreToolUse.json"), given(runtime, "PostToolUse.json")
    assert (before["tool_name"], before["tool_input"]) == ("run_command", {"command": "touch made"})
    assert after["tool_response"] == {"text": "[no output]\n[exit code 0]", "ending": "complete"}
    stop = given(runtime, "Stop.json")
    assert (stop["stop_hook_active"], stop["last_assistant_message"]) == (False, "Done.")


async def test_secrets_of_the_environment_do_not_reach_a_hook(opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(UserPromptSubmit="env > environment"), says("ok"))
    runtime.environ = {**runtime.environ, "GH_TOKEN": "hunter2", "PLAIN": "yes"}
    await collect(chat.send("go"))
    environment = (runtime.folder / "environment").read_text()
    assert "PLAIN=yes" in environment
    assert f"CLAUDE_PROJECT_DIR={runtime.folder}" in environment
    assert "hunter2" not in environment
    assert "sk-test" not in environment


@pytest.mark.parametrize(
    "refusing",
    [
        "echo not today >&2; exit 2",
        decides("PreToolUse", permissionDecision="deny", permissionDecisionReason="not today"),
        answers(decision="block", reason="not today"),
    ],
)
async def test_a_refusal_before_a_tool_is_what_the_model_reads(refusing: str, opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(PreToolUse=refusing), RUN, says("ok"), approvals="all")
    events = await collect(chat.send("go"))
    (ended,) = of_kind(events, ToolEnded)
    assert ended.message.ending is Ending.REFUSED
    assert ended.message.text == "Not run: a hook refused this call. It says: not today"
    assert "A hook refused run_command: not today" in lines(events)
    assert not (runtime.folder / "made").exists()


async def test_a_changed_call_is_shown_asked_about_and_run_as_it_is_shown(opened: Opened) -> None:
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(Permission.ONCE)

    change = decides("PreToolUse", updatedInput={"command": "touch other"})
    chat, runtime, _ = opened(hooked(PreToolUse=change), RUN, says("ok"))
    chat.listener.ask = ask
    events = await collect(chat.send("go"))
    assert [request.detail for request in asked] == ["touch other"]
    assert any(
        "changed a call of run_command: command “touch made” → “touch other”" in line
        for line in lines(events)
    )
    (ended,) = of_kind(events, ToolEnded)
    assert "changed this call before it ran: command “touch made” → “touch other”" in ended.message.text
    assert (runtime.folder / "other").exists()
    assert not (runtime.folder / "made").exists()


@pytest.mark.parametrize(
    ("policy", "deny", "runs"),
    [
        ("ask", (), True),
        ("read-only", (), False),
        ("plan", (), False),
        ("ask", ("run_command(touch *)",), False),
    ],
)
async def test_a_yes_spares_a_question_and_never_lifts_a_refusal(
    policy: str, deny: tuple[str, ...], runs: bool, opened: Opened
) -> None:
    hooks = hooked(PreToolUse=decides("PreToolUse", permissionDecision="allow"))
    chat, runtime, _ = opened(hooks, RUN, says("ok"), approvals=policy)
    for rule in deny:
        chat.session.permissions.deny = (*chat.session.permissions.deny, chat.session.permissions.add(rule))
        chat.session.permissions.session.clear()

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        raise AssertionError("it was asked")

    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert (runtime.folder / "made").exists() is runs


async def test_what_the_user_refused_once_no_hook_allows_later(opened: Opened) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.detail)
        return PermissionAnswer(Permission.NO)

    # it wavers: it says yes from the second time on
    allowing = decides("PreToolUse", permissionDecision="allow")
    wavering = f"if [ -e asked ]; then {allowing}; fi; touch asked"
    chat, runtime, _ = opened(hooked(PreToolUse=wavering), RUN, RUN, says("ok"))
    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert asked == ["touch made", "touch made"]
    assert not (runtime.folder / "made").exists()


async def test_a_yes_does_not_reach_files_that_decide_what_runs(opened: Opened) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.title)
        return PermissionAnswer(Permission.NO)

    write = call("write_file", '{"path": ".agents/hooks.json", "content": "{}"}')
    hooks = hooked(PreToolUse=decides("PreToolUse", permissionDecision="allow"))
    chat, runtime, _ = opened(hooks, calls(write), says("ok"))
    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert asked == ["Allow write_file?"]
    assert not (runtime.folder / ".agents").exists()


async def test_a_projects_yes_counts_for_nothing_and_its_no_counts(opened: Opened) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.detail)
        return PermissionAnswer(Permission.NO)

    chat, runtime, _ = opened(hooked(), RUN, says("ok"))
    project_hooks(runtime.folder, PreToolUse=decides("PreToolUse", permissionDecision="allow"))
    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert asked == ["touch made"]


async def test_a_project_cannot_change_a_call_behind_the_users_yes(opened: Opened) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.detail)
        return PermissionAnswer(Permission.NO)

    hooks = hooked(PreToolUse=decides("PreToolUse", permissionDecision="allow"))
    chat, runtime, _ = opened(hooks, RUN, says("ok"))
    project_hooks(runtime.folder, PreToolUse=decides("PreToolUse", updatedInput={"command": "touch evil"}))
    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert asked == ["touch evil"]


async def test_a_hook_can_ask_where_nothing_would(opened: Opened) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.detail)
        return PermissionAnswer(Permission.ONCE)

    hooks = hooked(PreToolUse=decides("PreToolUse", permissionDecision="ask"))
    chat, _, _ = opened(hooks, RUN, says("ok"), approvals="all")
    chat.listener.ask = ask
    await collect(chat.send("go"))
    assert asked == ["touch made"]


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("exit 1", "failed (exit code 1)"),
        ("kill -9 $$", "failed (killed by signal 9)"),
        ("echo '{'", "failed (what it wrote begins like JSON and is none)"),
        ('echo \'{"decision": [1], "hookSpecificOutput": 7, "systemMessage": {}}\'', ""),
        ("echo garbage", ""),
        ("no-such-program-here", "failed (exit code 127"),
        ("yes '{' | head -c 3000000", "failed (it wrote more than"),
        ("head -c 3000000 /dev/zero >&2; exit 1", "failed (exit code 1"),
        ("exec 0<&-; true", ""),
    ],
)
async def test_a_hook_that_fails_is_a_line_and_the_work_goes_on(hook: str, said: str, opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(PreToolUse=hook), RUN, says("ok"), approvals="all")
    events = await collect(chat.send("go"))
    assert (runtime.folder / "made").exists()
    found = lines(events)
    assert all(line.isprintable() and len(line) < 600 for line in found)
    assert len(found) == bool(said)
    assert said in " ".join(found)


@pytest.mark.parametrize("hook", ["exit 1", "echo '{'"])
async def test_one_whose_failure_blocks_is_a_refusal(hook: str, opened: Opened) -> None:
    hooks = hooked(PreToolUse={"command": hook, "on_failure": "block"})
    chat, runtime, _ = opened(hooks, RUN, says("ok"), approvals="all")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.ending is Ending.REFUSED
    assert not (runtime.folder / "made").exists()


async def test_one_that_hangs_is_ended_with_all_that_it_started(opened: Opened) -> None:
    hooks = hooked(PreToolUse={"command": "sleep 600 & echo $! > pid; wait", "timeout": 1})
    chat, runtime, _ = opened(hooks, RUN, says("ok"), approvals="all")
    events = await collect(chat.send("go"))
    assert "it took more than 1 seconds" in lines(events)[0]
    assert (runtime.folder / "made").exists()
    pid = int((runtime.folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("matcher", "is_met"), [("Edit|Bash", True), ("run_.*", True), ("*", True), ("run", False)]
)
async def test_a_matcher_means_whole_names(matcher: str, is_met: bool, opened: Opened) -> None:
    hooks = hooked(PreToolUse={"command": "exit 2", "matcher": matcher})
    chat, _, _ = opened(hooks, RUN, says("ok"), approvals="all")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert (ended.message.ending is Ending.REFUSED) is is_met


async def test_a_file_is_named_as_other_agents_name_it(opened: Opened) -> None:
    hooks = hooked(PreToolUse="cat > /tmp/../$PWD/given.json")
    chat, runtime, _ = opened(hooks, calls(call("list_files", '{"path": "."}')), says("ok"))
    await collect(chat.send("go"))
    assert given(runtime, "given.json")["tool_input"] == {"path": ".", "file_path": str(runtime.folder / ".")}


async def test_what_hooks_say_of_a_message_goes_below_it(opened: Opened) -> None:
    hooks = hooked(
        SessionStart="echo The branch is main.",
        UserPromptSubmit=decides("UserPromptSubmit", additionalContext="It is \x1b[2JTuesday."),
    )
    chat, _, provider = opened(hooks, says("ok"), says("ok"))
    (started,) = of_kind(await collect(chat.send("hello")), TurnStarted)
    assert "The branch is main." in started.message.note
    assert "It is ␛[2JTuesday." in started.message.note
    assert "The branch is main." in provider.requests[0].messages[-1].text
    await collect(chat.send("again"))
    assert "The branch is main." not in provider.requests[1].messages[-1].text
    assert "Tuesday" in provider.requests[1].messages[-1].text


async def test_a_message_that_a_hook_refuses_is_neither_sent_nor_stored(opened: Opened) -> None:
    chat, _, provider = opened(hooked(UserPromptSubmit="echo no secrets >&2; exit 2"), says("ok"))
    with pytest.raises(ChatError, match=r"Not sent: a hook refused the message\. no secrets"):
        await collect(chat.send("the password is x"))
    assert (provider.requests, list(chat.session.messages)) == ([], [])
    assert not chat.busy


async def test_a_stop_ends_the_hooks_of_a_message(opened: Opened) -> None:
    hooks = hooked(UserPromptSubmit="echo 1 > begun; sleep 600")
    chat, runtime, provider = opened(hooks, says("ok"))
    sending = asyncio.create_task(collect(chat.send("hello")))
    await eventually(lambda: is_written(runtime.folder / "begun"))
    chat.stop()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ChatError, match="Not sent: its hooks were stopped"):
            await sending
    assert provider.requests == []


async def test_a_stop_hook_sends_the_model_on_once(opened: Opened) -> None:
    hooks = hooked(Stop=answers(decision="block", reason="Run the tests, too."))
    chat, _, provider = opened(hooks, says("Done."), says("Really done."), says("never"))
    events = await collect(chat.send("go"))
    assert [event.message.text for event in of_kind(events, Steered)] == [
        "[from a Stop hook] Run the tests, too."
    ]
    assert len(provider.requests) == 2
    assert events[-1].outcome is Outcome.DONE
    assert lines(events) == [
        "A Stop hook makes the model continue: Run the tests, too.",
        "A Stop hook refused again, but the turn ends anyway: Run the tests, too.",
    ]


async def test_a_hook_can_end_the_turn(opened: Opened) -> None:
    hooks = hooked(PostToolUse=answers(**{"continue": False, "stopReason": "enough"}))
    two = calls(
        call("run_command", '{"command": "touch made"}'), call("run_command", '{"command": "touch two"}')
    )
    chat, runtime, provider = opened(hooks, two, says("never"), approvals="all")
    events = await collect(chat.send("go"))
    assert len(provider.requests) == 1
    assert [ended.message.ending for ended in of_kind(events, ToolEnded)] == [Ending.COMPLETE, Ending.REFUSED]
    assert lines(events)[-1] == "A hook ended the turn: enough"
    assert not (runtime.folder / "two").exists()


async def test_what_a_hook_says_of_a_result_goes_with_it(opened: Opened) -> None:
    hooks = hooked(PostToolUse="echo 'line 3 is too long' >&2; exit 2")
    chat, _, _ = opened(hooks, RUN, says("ok"), approvals="all")
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert "[a hook objects to this result]\nline 3 is too long" in ended.message.text
    assert ended.message.ending is Ending.COMPLETE


async def test_a_project_that_is_not_trusted_runs_no_hook(opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(), RUN, says("ok"), approvals="all")
    runtime.trust.everything = False
    project_hooks(runtime.folder, PreToolUse="touch evil", SessionStart="touch evil", Stop="touch evil")
    events = await collect(chat.send("go"))
    assert not (runtime.folder / "evil").exists()
    assert any(line.startswith("Not read: .agents/hooks.json") for line in lines(events))


async def test_trusted_hooks_stay_as_they_were_read_while_the_program_runs(opened: Opened) -> None:
    listing = calls(call("list_files", "{}"))
    chat, runtime, _ = opened(hooked(), listing, says("ok"), listing, says("ok"))
    file = project_hooks(runtime.folder, PreToolUse="exit 2")
    runtime.trust.everything = False
    runtime.trust.trust(runtime.trust.undecided())
    for text in ("one", "two"):
        (ended,) = of_kind(await collect(chat.send(text)), ToolEnded)
        assert ended.message.ending is Ending.REFUSED
        file.write_text("{}")  # as a model might, to be rid of it
    assert chat.session.hooks.faults == ()


async def test_a_hook_that_runs_the_program_does_not_run_itself(opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(UserPromptSubmit="touch ran"), says("ok"))
    runtime.environ = {**runtime.environ, IN_HOOK: "1"}
    await collect(chat.send("go"))
    assert not (runtime.folder / "ran").exists()


@pytest.mark.parametrize("summarize", ["off", "extract"])
async def test_before_messages_are_dropped_or_summarized_a_hook_is_told(
    summarize: str, tmp_path: Path
) -> None:
    hooks = hooked(PreCompact="cat > compact.json; echo kept >&2; exit 2")
    provider = ScriptedProvider(says("word " * 900))
    context = replace(Settings().context, summarize=summarize)
    settings = Settings(agent=AgentSettings(tools="none"), hooks=hooks, context=context)
    runtime = make_runtime(tmp_path, provider, settings=settings, window=8_192)
    chat = Chat.open(runtime, rolling=True)
    chat.session.summaries.extract_only()
    said: list[str] = []
    for _ in range(8):
        said += lines(await collect(chat.send("tell me " * 200)))
        await chat.session.summaries.settled()
    assert given(runtime, "compact.json")["trigger"] == "auto"
    assert any("A PreCompact hook says: kept" in line for line in said)
    runtime.store.close()


async def test_a_session_that_is_closed_ends_its_hooks(opened: Opened) -> None:
    chat, runtime, _ = opened(hooked(Notification="echo $$ > pid; sleep 600"), says("ok"))
    chat.session.hooks.notify("a question waits")
    await eventually(lambda: is_written(runtime.folder / "pid"))
    await chat.disconnect()
    with pytest.raises(ProcessLookupError):
        os.kill(int((runtime.folder / "pid").read_text()), 0)


async def test_without_hooks_a_message_is_the_same(opened: Opened) -> None:
    chat, _, provider = opened(hooked(), says("ok"))
    ended = (await collect(chat.send("hello")))[-1]
    assert isinstance(ended, TurnEnded)
    assert provider.requests[0].messages[-1].text == "hello"
    assert replace(chat.session.messages[0], id="").note == ""


async def test_a_task_is_under_the_same_hooks_for_its_tools_and_no_others(opened: Opened) -> None:
    hooks = hooked(
        PreToolUse={"command": "cat > tool.json; exit 2", "matcher": "Bash"},
        SessionStart="echo x >> started",
        Stop="echo x >> stopped",
    )
    task = calls(call("task", '{"prompt": "Touch it.", "tools": ["run_command"]}'))
    chat, runtime, _ = opened(hooks, task, RUN, says("could not"), says("ok"), approvals="all")
    await collect(chat.send("go"))
    assert given(runtime, "tool.json")["session_id"] == chat.session.info.id
    assert not (runtime.folder / "made").exists()
    for name in ("started", "stopped"):
        assert (runtime.folder / name).read_text() == "x\n"


async def test_a_projects_hook_runs_in_the_sandbox_and_the_users_does_not(
    opened: Opened, tmp_path: Path
) -> None:
    real_sandbox()
    outside = tmp_path / "outside"
    outside.mkdir()
    hooks = hooked(UserPromptSubmit=f"touch {outside}/mine")
    chat, runtime, _ = opened(hooks, says("ok"), sandbox="auto")
    project_hooks(runtime.folder, UserPromptSubmit=f"cat > given.json; touch {outside}/theirs")
    await collect(chat.send("go"))
    assert given(runtime, "given.json")["prompt"] == "go"
    assert [path.name for path in outside.iterdir()] == ["mine"]


async def test_where_a_sandbox_is_required_and_missing_a_projects_hook_does_not_run(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxing, "find_sandbox", lambda: SandboxProgram("", missing="there is none"))
    chat, runtime, _ = opened(hooked(UserPromptSubmit="touch mine"), says("ok"), sandbox="required")
    project_hooks(runtime.folder, UserPromptSubmit="touch theirs")
    (line,) = lines(await collect(chat.send("go")))
    assert 'agent.sandbox is "required", and there is no sandbox here (there is none)' in line
    assert (runtime.folder / "mine").exists()
    assert not (runtime.folder / "theirs").exists()
