"""/share says who may use the session; in a file of this machine nobody else can."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.commands import parse, run_command
from tests.support.commands import PlainContext
from tests.support.tui import make_chat


async def test_a_session_on_this_machine_is_shared_with_nobody(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    said = []
    for line in ("/share", "/share bob often", "/share bob write"):
        parsed = parse(line)
        assert parsed is not None
        await run_command(parsed, context)
        said.append(" ".join([*context.said, *context.warned]))
    assert said[0].startswith("Shared with nobody; /share NAME read or write invites")
    assert "There is no access 'often'; there are read, write, none." in said[1]
    assert "sessions in a file on this machine are shared with nobody" in said[2]
