"""Every claim of the README that can be checked is."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

from rolling_chat.cli.exits import Exit
from rolling_chat.cli.options import FORMATS, read_options
from rolling_chat.commands.registry import all_commands
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from rolling_chat.tools import all_tools

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


def test_the_tool_table_is_the_registry() -> None:
    for tool in all_tools():
        parameters = ", ".join(tool.schema["function"]["parameters"]["properties"])
        asks = "yes" if tool.needs_leave else "no"
        assert re.search(rf"\| `{tool.name}\({parameters}\)` \| .* \| {asks} \|", README), tool.name


def test_the_settings_are_the_defaults() -> None:
    block = re.search(r"<!-- settings -->\n```toml\n(.*?)```", README, re.DOTALL)
    assert block
    shown = tomllib.loads(block.group(1))
    defaults = Settings()
    for name, group in (("context", ContextSettings()), ("agent", AgentSettings())):
        keys = {field.name for field in dataclasses.fields(group)} - (
            {"tools"} if name == "context" else set()
        )
        assert shown[name] == {key: getattr(group, key) for key in keys}
    assert (shown["model"], shown["theme"], tuple(shown["trusted_folders"])) == ("", defaults.theme, ())


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


@pytest.mark.parametrize("example", blocks("python"))
def test_every_example_runs(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out
