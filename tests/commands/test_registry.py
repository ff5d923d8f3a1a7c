"""The registry is the one list of commands: help and completion show it, and the line is parsed by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from rolling_chat.commands import all_commands, complete, find_command, nearest_command, parse
from rolling_chat.commands.registry import unknown_command
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from tests.support.tui import make_app, make_chat, screen_of, shown, wait_until

NAMES = [command.name for command in all_commands()]


def test_every_command_of_the_program_is_there_once() -> None:
    assert sorted(NAMES) == sorted(
        {
            "rolling-context",
            "context",
            "cost",
            "compact",
            "summary",
            "lost",
            "pin",
            "unpin",
            "exclude",
            "include",
            "recall",
            "notes",
            "files",
            "diff",
            "run",
            "processes",
            "paste",
            "mode",
            "permissions",
            "mcp",
            "trust",
            "memory",
            "init",
            "skills",
            "hooks",
            "skill",
            "model",
            "effort",
            "undo",
            "redo",
            "rewind",
            "retry",
            "branches",
            "fork",
            "new",
            "sessions",
            "search",
            "resume",
            "rename",
            "share",
            "export",
            "copy",
            "theme",
            "help",
            "quit",
        }
    )


def test_a_slash_alone_offers_them_all() -> None:
    assert complete("/") == all_commands()


async def test_help_shows_every_command_with_its_summary(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(120, 156)) as pilot:
        await pilot.press("f1")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await wait_until(pilot, lambda: pilot.app.screen.query(Static).last().size.height)
        read = " ".join(shown(pilot).replace("│", " ").split())
        for command in all_commands():
            assert command.signature in read
        assert screen_of(pilot)


@pytest.mark.parametrize("command", all_commands(), ids=NAMES)
def test_every_command_is_found_by_its_name_and_says_what_it_does_on_one_line(command: object) -> None:
    assert find_command(command.name) is command
    assert complete(f"/{command.name}")[0] is command
    assert 0 < len(command.summary) < 80
    assert "\n" not in command.summary


def test_what_looks_may_be_done_while_the_model_works_and_what_leaves_may_not() -> None:
    busy = {command.name for command in all_commands() if command.while_busy}
    stop_first = {"undo", "rewind", "retry"}
    look = {
        *("pin", "unpin", "exclude", "include"),
        *(
            "rolling-context",
            "context",
            "cost",
            "lost",
            "recall",
            "notes",
            "files",
            "diff",
            "run",
            "paste",
            "mode",
            "mcp",
            "processes",
            "hooks",
            "permissions",
            "rename",
            "export",
        ),
        *("copy", "theme", "help", "quit"),
    }
    assert busy == look | stop_first


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/model", ("model", "")),
        ("  /Model  openai/gpt-4o  ", ("model", "openai/gpt-4o")),
        ("/rolling-context on", ("rolling-context", "on")),
        ("/nonsense", ("nonsense", "")),
        ("/etc/hosts is missing", None),
        ("// a comment", None),
        ("/", None),
        ("model", None),
        ("/model\nand more", None),
        ("", None),
    ],
)
def test_a_line_is_a_command_or_a_message(line: str, expected: tuple[str, str] | None) -> None:
    parsed = parse(line)
    assert (parsed and (parsed.name, parsed.argument)) == expected


@pytest.mark.parametrize(
    ("typed", "first"), [("/ro", "rolling-context"), ("/RES", "resume"), ("/text", "context"), ("/q", "quit")]
)
def test_completion_begins_with_what_begins_so(typed: str, first: str) -> None:
    offered = complete(typed)
    assert first in [command.name for command in offered]


@pytest.mark.parametrize("typed", ["/model x", "hello", "/zzz", "", "/model\n"])
def test_nothing_is_offered_where_nothing_fits(typed: str) -> None:
    assert complete(typed) == ()


@pytest.mark.parametrize(
    ("typo", "meant"), [("mdoel", "model"), ("sesions", "sessions"), ("roll", "rolling-context")]
)
def test_a_typing_error_finds_what_was_meant(typo: str, meant: str) -> None:
    near = nearest_command(typo)
    assert near is not None
    assert near.name == meant


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("clear", "/new"), ("exit", "/quit"), ("usage", "/cost"), ("status", "rolling-chat doctor"),
        ("config", "rolling-chat doctor"), ("mdoel", "/model"), ("xyzzy", "/help"),
    ],
)  # fmt: skip
def test_an_unknown_command_names_the_one_that_does_it(typed: str, hint: str) -> None:
    line = unknown_command(typed)
    assert line.startswith(f"There is no command /{typed}; ")
    assert hint in line


def test_what_is_like_nothing_finds_nothing() -> None:
    assert nearest_command("xyzzy") is None
