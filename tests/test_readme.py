"""Every claim of the README that can be checked is."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from rolling_chat.cli.exits import Exit
from rolling_chat.cli.parser import FORMATS, read_options
from rolling_chat.commands.registry import all_commands
from rolling_chat.context import ContextConfig
from rolling_chat.settings.schema import ANY, RULES, Settings
from rolling_chat.tools.registry import all_tools
from rolling_chat.tui.keymap import KEYS, Keymap
from tests.benchmarks.extras import extras
from tests.support.servers import AnthropicServer, Call, OpenAIServer, Reply

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


LINES = [line for block in blocks("sh") for line in block.splitlines() if "rolling-chat" in line]


def test_it_begins_with_the_two_commands() -> None:
    first, second = blocks("sh")[:2]
    assert first == "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/rolling-chat\n"
    assert second == "python3 -m venv .venv && .venv/bin/pip install -q '.[test]' && .venv/bin/pytest\n"


def test_the_command_table_is_the_registry() -> None:
    table = re.search(r"<!-- commands -->\n(.*?)<!-- end of commands -->", README, re.DOTALL)
    assert table
    rows = [
        tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        for row in table.group(1).splitlines()[2:]
    ]
    expected = [
        (
            f"`{f'/{command.name} {command.usage}'.strip()}`".replace("|", "\\|"),
            command.summary.replace("|", "\\|"),
        )
        for command in all_commands()
    ]
    assert rows == expected


def test_the_key_table_is_the_programs() -> None:
    table = re.search(r"<!-- keys -->\n(.*?)<!-- end of keys -->", README, re.DOTALL)
    assert table
    names = [", ".join(f"`{action.name}`" for action in row.actions) for row in KEYS]
    rows = [
        f"| {keys} | {what} | {name} |" for (keys, what), name in zip(Keymap().help(), names, strict=True)
    ]
    assert table.group(1).splitlines()[2:] == rows


def test_the_tool_table_is_the_registry() -> None:
    for tool in all_tools():
        parameters = ", ".join(tool.schema["function"]["parameters"]["properties"])
        asks = "yes" if tool.needs_permission else "no"
        assert re.search(rf"\| `{tool.name}\({parameters}\)` \| .* \| {asks} \|", README), tool.name


def test_the_settings_are_the_defaults() -> None:
    block = re.search(r"<!-- settings -->\n```toml\n(.*?)```", README, re.DOTALL)
    assert block
    shown = dict(_leaves(tomllib.loads(block.group(1))))
    # tables with names of the user's own have an example of their own below the list
    expected = {path: _default(path) for path in RULES if ANY not in path}
    assert shown == expected


def _leaves(table: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _default(path: tuple[str, ...]) -> Any:
    value = functools.reduce(getattr, path, Settings())
    return list(value) if isinstance(value, tuple) else value


def test_every_extra_is_named() -> None:
    table = re.search(r"<!-- extras -->\n(.*?)<!-- end of extras -->", README, re.DOTALL)
    assert table
    assert re.findall(r"^\| `([^`]+)`", table.group(1), re.MULTILINE) == extras()


def test_the_exit_codes_are_the_programs() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)} == {
        int(code) for code in Exit
    }


def test_every_output_format_is_named() -> None:
    assert all(f"`{name}`" in README for name in FORMATS)


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_shown_is_understood(line: str) -> None:
    command = (
        line.split("#", maxsplit=1)[0].split("rolling-chat", 1)[1].split(">", maxsplit=1)[0]
        if ".venv" not in line
        else ""
    )
    words = re.findall(r'"[^"]*"|\S+', command)
    read_options([word.strip('"') for word in words])


def test_every_picture_is_one_that_a_test_keeps() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) >= 2
    for picture in pictures:
        assert "__snapshots__" in picture
        assert (ROOT / unquote(picture)).is_file()


# litellm may still be logging in a thread of its own when the interpreter ends: its event loop complains then
_LITELLM_AT_THE_END = re.compile(r"Exception ignored in: <function BaseEventLoop\.__del__.*", re.DOTALL)

_NAMES = ("api", "alone", "openai", "anthropic", "litellm", "counted")
EXAMPLES = dict(zip(_NAMES, blocks("python"), strict=True))


def run(example: str, folder: Path, **environ: str) -> str:
    """What an example prints, in a process of its own as its reader has it."""
    # else litellm asks the network for the table that it carries
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    clean = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[example]],
        cwd=folder,
        env={**clean, **quiet, "HOME": str(folder), "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = _LITELLM_AT_THE_END.sub("", done.stderr) if example == "litellm" else done.stderr
    assert (done.returncode, said) == (0, "")
    return done.stdout


def test_the_pipeline_alone_makes_a_prompt(tmp_path: Path) -> None:
    count, within_budget, messages = run("alone", tmp_path).split(maxsplit=2)
    assert int(count) > 0
    assert within_budget == "True"
    assert "Hello." in messages


def test_what_a_reply_counted_is_the_size_of_what_was_sent(tmp_path: Path) -> None:
    assert run("counted", tmp_path) == "25\n"


def test_the_openai_client_is_sent_a_prompt_that_grows(tmp_path: Path) -> None:
    replies = Reply("It cuts text into tokens."), Reply("It makes a tree of them.")
    with OpenAIServer(replies, key="sk-right").in_thread() as server:
        shown = run("openai", tmp_path, OPENAI_BASE_URL=server.api_base, OPENAI_API_KEY="sk-right")
    first, second = (request.messages for request in server.requests)
    assert [message["role"] for message in first] == ["system", "user"]
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": "It cuts text into tokens."}
    assert not any(request.refused for request in server.requests)
    assert shown == "It cuts text into tokens.\nIt makes a tree of them.\n"


def test_the_python_api_asks_the_model_that_is_named(tmp_path: Path) -> None:
    home, answer = str(tmp_path / "home"), Reply("It holds a parser.")
    with OpenAIServer((answer,), key="sk-right", models=("gpt-4.1",)).in_thread() as server:
        base, key = server.api_base, "sk-right"
        shown = run("api", tmp_path, OPENAI_BASE_URL=base, OPENAI_API_KEY=key, ROLLING_CHAT_HOME=home)
    (request,) = server.requests
    assert "What does this folder do?" in request.messages[-1]["content"]
    assert shown.splitlines()[0] == "It holds a parser."
    assert "in the last prompt" in shown.splitlines()[1]


def test_the_anthropic_client_is_sent_the_system_message_by_itself(tmp_path: Path) -> None:
    replies = Reply("It cuts text into tokens."), Reply("It makes a tree of them.")
    with AnthropicServer(replies, key="sk-right").in_thread() as server:
        shown = run("anthropic", tmp_path, ANTHROPIC_BASE_URL=server.api_base, ANTHROPIC_API_KEY="sk-right")
    first, second = (request.body for request in server.requests)
    assert first["system"] == second["system"] == "You are helpful."
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][:1] == first["messages"]
    assert first["max_tokens"] == ContextConfig().reserved_output_tokens
    assert not any(request.refused for request in server.requests)
    assert shown == "It cuts text into tokens.\nIt makes a tree of them.\n"


@pytest.mark.slow  # an import of litellm by itself
def test_litellm_is_sent_the_result_beside_its_call(tmp_path: Path) -> None:
    replies = Reply("", (Call("now"),)), Reply("Half past twelve.")
    with OpenAIServer(replies, key="sk-right").in_thread() as server:
        shown = run("litellm", tmp_path, OPENAI_BASE_URL=server.api_base, OPENAI_API_KEY="sk-right")
    first, second = server.requests
    assert first.body["tools"][0]["function"]["name"] == "now"
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert second.messages[3]["tool_call_id"] == second.messages[2]["tool_calls"][0]["id"]
    assert not first.refused + second.refused
    assert shown == "Half past twelve.\n"
