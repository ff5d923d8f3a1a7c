"""/trust names what the folder brings along, by kind, and says from when on a change counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands.registry import parse, run_command
from tests.support.commands import PlainContext
from tests.support.tui import make_chat


@pytest.fixture
def context(tmp_path: Path) -> PlainContext:
    folder = tmp_path / "work"
    (folder / ".agents" / "commands").mkdir(parents=True)
    (folder / ".agents" / "commands" / "de\x1b[2Jploy.md").write_text("Deploy.")
    (folder / ".mcp.json").write_text("{}")
    return PlainContext(make_chat(tmp_path / "home", folder=folder))


async def trust(context: PlainContext, *picks: str) -> None:
    context.picks.extend(picks)
    parsed = parse("/trust")
    assert parsed is not None
    await run_command(parsed, context)


async def test_it_trusts_and_takes_back_and_says_when_that_counts(context: PlainContext) -> None:
    await trust(context, "trust")
    assert context.said[-1].startswith("Trusted: .mcp.json, .agents/commands/de")
    assert "\x1b" not in context.said[-1]
    assert context.said[-1].endswith(
        "This changes with your next message, settings and MCP servers with the next start."
    )
    assert context.chat.trust.unread() == ()
    await trust(context, "stop")
    assert context.said[-1].startswith("No longer used: ")
    assert len(context.chat.trust.unread()) == 2


async def test_a_folder_with_nothing_is_told_so(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await trust(context)
    assert context.said == ["This folder brings nothing along that would be used."]
