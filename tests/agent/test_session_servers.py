"""The MCP servers of a session: what the model is offered, what is asked, and what stays."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.events import Noticed, Permission, PermissionAnswer, PermissionRequest, ToolEnded
from rolling_chat.messages import Ending
from tests.support.agent import ScriptedProvider, call, calls, collect, make_runtime, of_kind, says
from tests.support.mcp import settings_with
from tests.support.patience import eventually

PLAIN = "mcp__test__plain"


def opened(
    tmp_path: Path, *scripts: Any, way: str = "good", ask: Any = None, mcp: Any = None, **agent: Any
) -> tuple[Chat, Runtime, ScriptedProvider]:
    provider = ScriptedProvider(*scripts)
    runtime = make_runtime(tmp_path, provider, settings=settings_with(way, mcp=mcp, **agent))
    return Chat.open(runtime, model="openai/scripted", ask=ask), runtime, provider


async def closed(chat: Chat) -> None:
    await chat.disconnect()
    chat.close()


def offered(provider: ScriptedProvider, request: int = -1) -> list[str]:
    return [tool["function"]["name"] for tool in provider.requests[request].tools]


async def test_a_call_is_asked_about_as_it_is_sent_and_its_result_goes_back(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(Permission.ONCE)

    turn = calls(call(PLAIN, '{"b": "\\u202e\\u001b[2J", "a": 1}'))
    chat, _, provider = opened(tmp_path, turn, says("done"), ask=ask)
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert PLAIN in offered(provider, 0)
    (request,) = asked
    assert request.title == f"Allow {PLAIN}?"
    assert request.detail == 'plain of the MCP server test\n{\n  "b": "\u202e\\u001b[2J",\n  "a": 1\n}'
    assert ended.message.text == '{"b": "\\u202e\\u001b[2J", "a": 1}'
    assert request.rule is not None
    assert request.rule.text == PLAIN
    await closed(chat)


@pytest.mark.parametrize(
    ("rules", "approvals", "runs"),
    [
        ({"allow": (PLAIN,)}, "ask", True),
        ({"allow": ("mcp__test__*",)}, "ask", True),
        ({"allow": ("mcp__tes__*", "mcp__other__*")}, "ask", False),
        ({"allow": ("mcp__test__*",), "deny": ("mcp__*",)}, "all", False),
        ({"allow": ("mcp__test__*",)}, "plan", False),
        ({}, "read-only", False),
        ({}, "all", True),
    ],
)
async def test_rules_and_modes_decide_about_the_tools_of_servers(
    tmp_path: Path, rules: dict[str, tuple[str, ...]], approvals: str, runs: bool
) -> None:
    settings = settings_with()
    permissions = replace(settings.agent.permissions, **rules)
    chat, *_ = opened(
        tmp_path, calls(call(PLAIN)), says("done"), permissions=permissions, approvals=approvals
    )
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert (ended.message.ending is Ending.COMPLETE) == runs
    await closed(chat)


async def test_a_large_set_is_found_by_search_and_called_under_its_own_name(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.title)
        return PermissionAnswer(Permission.ONCE)

    through = call("mcp", '{"tool": "mcp__test__tool7", "arguments": {"x": 1}}')
    scripts = (
        calls(call("mcp", '{"search": "thing 7"}')),
        calls(through),
        calls(call("mcp__test__tool9")),
        says("."),
    )
    chat, _, provider = opened(tmp_path, *scripts, way="many", ask=ask)
    found, called, direct = of_kind(await collect(chat.send("go")), ToolEnded)
    assert offered(provider, 0)[-1] == "mcp"
    assert not any(name.startswith("mcp__") for name in offered(provider, 0))
    assert found.message.text.startswith('{"name": "mcp__test__tool7"')
    assert called.message.text == '{"x": 1}'
    assert direct.message.text == "{}"
    assert asked == ["Allow mcp__test__tool7?", "Allow mcp__test__tool9?"]
    assert provider.requests[0].tools == provider.requests[-1].tools
    await closed(chat)


async def test_a_share_of_all_of_the_window_offers_every_tool(tmp_path: Path) -> None:
    chat, _, provider = opened(tmp_path, says("."), way="many", mcp={"max_share": 1.0})
    await collect(chat.send("go"))
    assert len([name for name in offered(provider) if name.startswith("mcp__")]) == 60
    assert "mcp" not in offered(provider)
    await closed(chat)


async def test_switching_a_server_lasts_with_the_session(tmp_path: Path) -> None:
    chat, _, provider = opened(tmp_path, says("."))
    await collect(chat.send("one"))
    chat.session.servers.switch("test", on=False)
    await collect(chat.send("two"))
    assert PLAIN in offered(provider, 0)
    assert PLAIN not in offered(provider, 1)
    with pytest.raises(ChatError, match="There is no MCP server 'x'; there are: test"):
        chat.session.servers.switch("x", on=True)
    first = chat.session.info
    chat.start_new()
    await collect(chat.send("three"))
    assert PLAIN in offered(provider, 2)
    chat.resume(first.id)
    await collect(chat.send("four"))
    assert PLAIN not in offered(provider, 3)
    await closed(chat)


async def test_a_resumed_session_says_which_of_its_servers_are_missing(tmp_path: Path) -> None:
    chat, runtime, _ = opened(tmp_path, says("."))
    await collect(chat.send("one"))
    await chat.disconnect()
    other = replace(runtime, settings=settings_with(name="other"))
    chat.close()
    again = Chat.open(other, model="openai/scripted", session=other.store.session(chat.session.info.id))
    assert "This session used the MCP server test, which is not configured here now." in again.session.notices
    await closed(again)


async def test_a_turn_waits_no_longer_than_the_settings_say(tmp_path: Path) -> None:
    chat, _, provider = opened(tmp_path, says("."), way="silent", mcp={"startup_seconds": 0})
    noticed = [event.text for event in of_kind(await collect(chat.send("go")), Noticed)]
    assert noticed == ["the MCP server test has not started yet: this turn goes on without."]
    assert PLAIN not in offered(provider)
    await closed(chat)


async def test_a_server_that_fails_is_one_line_and_the_turn_goes_on(tmp_path: Path) -> None:
    chat, *_ = opened(tmp_path, says("."), way="dead")
    lines: list[str] = []
    chat.listener.on_server = lines.append
    await collect(chat.send("go"))
    await collect(chat.send("go"))
    assert [line for line in lines if line] == [
        "The MCP server test ended with exit code 1: cannot open the database; /mcp restart test tries again."
    ]
    await closed(chat)


async def test_without_the_extra_all_servers_say_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rolling_chat.tools.mcp.client", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    chat, runtime, _ = opened(tmp_path, says("."))
    chat.session.servers.add([replace(runtime.mcp.by_name["test"].config, name="mine")])
    lines: list[str] = []
    chat.listener.on_server = lines.append
    await collect(chat.send("go"))
    assert [line for line in lines if line] == [
        "MCP servers need the extra mcp: pip install 'rolling-chat[mcp]'."
    ]
    await closed(chat)


async def test_a_session_can_have_servers_of_its_own_which_end_with_it(tmp_path: Path) -> None:
    chat, runtime, provider = opened(tmp_path, says("."))
    chat.session.servers.add([replace(runtime.mcp.by_name["test"].config, name="mine")])
    await collect(chat.send("go"))
    assert "mcp__mine__plain" in offered(provider)
    mine = chat.session.servers.find("mine")
    chat.start_new()
    await eventually(lambda: not mine.is_running)
    assert runtime.mcp.by_name["test"].is_running
    await closed(chat)


async def test_the_tools_stay_within_a_turn_and_are_looked_at_between(tmp_path: Path) -> None:
    """The list of a server that was switched on while the model worked is offered with the next turn."""
    chat, _, provider = opened(tmp_path, calls(call("list_files")), says("."))
    servers = chat.session.servers
    servers.switch("test", on=False)
    provider.scripts[0] = [lambda: servers.switch("test", on=True), *provider.scripts[0]]
    await collect(chat.send("go"))
    assert [PLAIN in offered(provider, index) for index in (0, 1)] == [False, False]
    await collect(chat.send("go"))
    assert PLAIN in offered(provider)
    await closed(chat)


@pytest.mark.parametrize(
    ("tools", "names"), [("none", []), (("mcp__test__*",), [PLAIN]), (("read_file",), ["read_file"])]
)
async def test_the_setting_of_tools_is_about_those_of_servers_as_well(
    tmp_path: Path, tools: Any, names: list[str]
) -> None:
    chat, _, provider = opened(tmp_path, says("."), tools=tools)
    await collect(chat.send("go"))
    assert offered(provider) == names
    await closed(chat)
