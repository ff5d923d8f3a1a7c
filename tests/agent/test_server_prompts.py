"""Prompts and resources of MCP servers as a user calls and mentions them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat
from rolling_chat.agent.mentioned_resources import MentionedResources
from rolling_chat.agent.server_prompts import read_arguments
from rolling_chat.commands.registry import custom_commands
from rolling_chat.events import ToolEnded
from rolling_chat.mentions import find, marked
from rolling_chat.messages import picture_address
from rolling_chat.settings.schema import McpServerSettings, Settings
from rolling_chat.tools.mcp.server import PromptArgument, ServerPrompt, ServerResource
from tests.support.agent import ScriptedProvider, call, calls, collect, make_runtime, of_kind, says
from tests.support.commands import PlainContext
from tests.support.mcp import REAL, server_of

REVIEW = ServerPrompt("review", "", (PromptArgument("file", True), PromptArgument("focus", False)))


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("x.py", {"file": "x.py"}),
        ("x.py speed and size", {"file": "x.py", "focus": "speed and size"}),
        ("'a b.py' bugs", {"file": "a b.py", "focus": "bugs"}),
        ("focus=bugs x.py", {"file": "x.py", "focus": "bugs"}),
        ("x=1 y", {"file": "x=1", "focus": "y"}),
        ("don't", {"file": "don't"}),
    ],
)
def test_arguments_are_words_in_their_order_or_named(typed: str, arguments: dict[str, str]) -> None:
    assert read_arguments(REVIEW, typed) == arguments


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(ValueError, match="it needs file"):
        read_arguments(REVIEW, "focus=bugs")
    with pytest.raises(ValueError, match="takes no arguments"):
        read_arguments(ServerPrompt("x", "", ()), "y")


@pytest.mark.parametrize(
    ("typed", "uri"),
    [
        ("@test:a://b", "a://b"),
        ("see @test:a://b.", "a://b"),
        ("@test:a://listed.", "a://listed."),
        ("@test:db://h:5432 now", "db://h:5432"),
        ('@"test:a b"', "a b"),
        ("@other:a://b", None),
        ("@test:", None),
        ("@src/x.py", None),
    ],
)
def test_a_mention_names_a_resource_by_its_server(tmp_path: Path, typed: str, uri: str | None) -> None:
    server = server_of(tmp_path)
    server.offer = replace(server.offer, resources=(ServerResource("a://listed.", "x"),))
    resources = MentionedResources([server], lambda _: 0)
    (place,) = find(marked(typed))
    found = resources.find(place)
    assert (found.uri if found is not None else None) == uri


async def test_a_prompt_is_a_command_and_a_resource_goes_with_a_message(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("ok"))
    server = McpServerSettings(command=sys.executable, args=(REAL,))
    settings = Settings()
    settings = replace(settings, mcp=replace(settings.mcp, servers=MappingProxyType({"test": server})))
    chat = Chat.open(make_runtime(tmp_path, provider, settings=settings), model="openai/scripted")
    await collect(chat.send(marked("read @test:notes://today and @test:picture://red")))
    (message,) = (one for one in provider.requests[-1].messages if one.role == "user")
    assert "Attached resource notes://today of the MCP server test" in message.text
    assert "Buy milk." in message.text
    attached = chat.session.messages[0].attachments
    assert [one.mention for one in attached] == [
        "test:notes://today",
        "test:picture://red",
        "test:picture://red",
    ]
    assert attached[2].picture.startswith("data:image/png;base64,")

    (command,) = (one for one in custom_commands(chat) if one.name == "test:review")
    assert command.usage == "file [focus]"
    context = PlainContext(chat)
    outcome = command.run(context, "x.py speed")
    assert outcome is not None
    await outcome
    assert "Review x.py for speed." in chat.session.messages[-2].text

    # a picture in a result reaches the model, and is stored with the session
    provider.scripts[:] = [says("")] * len(provider.requests) + [
        calls(call("mcp__test__picture")),
        says("red"),
    ]
    chat.session.permissions.policy = "all"
    (ended,) = of_kind(await collect(chat.send("draw")), ToolEnded)
    assert "[picture: PNG, 4 × 4" in ended.message.text
    (stored,) = [one for one in chat.session.messages if one.role == "tool"]
    assert picture_address(stored.content[1]).startswith("data:image/png;base64,")
    await chat.disconnect()
    chat.close()
