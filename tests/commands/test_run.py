"""!COMMAND runs a command for the user; its output goes into the prompt box, or is shown to them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.commands.registry import ParsedCommand
from tests.support.commands import PlainContext
from tests.support.tui import make_app, make_chat, screen_of, shown, wait_until


@pytest.fixture
def context(tmp_path: Path) -> PlainContext:
    folder = tmp_path / "work"
    folder.mkdir()
    return PlainContext(make_chat(tmp_path, folder=folder))


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("!ls -l", ParsedCommand("run", "ls -l")),
        ("!! ls", ParsedCommand("run", "! ls")),
        (" !ls", ParsedCommand("run", "ls")),
        ("!", None),
        ("! !", None),
        ("!ls\nand more", None),
        ("what!", None),
    ],
)
def test_a_line_that_begins_with_an_exclamation_mark_is_a_command(
    line: str, parsed: ParsedCommand | None
) -> None:
    assert parse(line) == parsed


async def test_its_output_goes_into_the_prompt_box(context: PlainContext) -> None:
    await run(context, "!echo one; pwd; exit 3")
    folder = context.chat.session.info.folder
    assert context.draft == f"I ran this command:\n$ echo one; pwd; exit 3\none\n{folder}\n[exit code 3]\n"
    assert not context.chat.session.messages


async def test_two_marks_only_show_it(context: PlainContext) -> None:
    await run(context, "!!echo secret")
    assert context.shown == [("$ echo secret", "secret\n[exit code 0]")]
    assert context.draft == ""


async def test_it_gets_no_secrets(context: PlainContext) -> None:
    await run(context, "!!env")
    assert "sk-test" not in context.shown[0][1]


async def test_alone_it_says_how_it_is_used(context: PlainContext) -> None:
    await run(context, "/run")
    assert context.warned[0].startswith("Type !COMMAND to run a command")


async def test_escape_ends_it_and_all_that_it_started(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    chat = make_chat(tmp_path, folder=folder)
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await pilot.press(*"!touch begun; sleep 1000; touch ended", "enter")
        await wait_until(pilot, (folder / "begun").exists)
        await wait_until(pilot, lambda: "running touch begun" in shown(pilot))
        await pilot.press("escape")
        await wait_until(pilot, lambda: "Ended: touch begun" in shown(pilot))
        assert not screen_of(pilot).prompt.text
        assert not (folder / "ended").exists()


async def test_long_output_stands_folded_in_the_box_with_its_price(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    async with make_app(make_chat(tmp_path, folder=folder), tmp_path).run_test(size=(100, 30)) as pilot:
        await pilot.press(*"!seq 100", "enter")
        await wait_until(pilot, lambda: "103 lines" in shown(pilot))
        assert screen_of(pilot).prompt.draft.whole.endswith("99\n100\n[exit code 0]\n")
