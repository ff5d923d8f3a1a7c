"""/hooks lists what runs by itself, and names what is left out."""

from __future__ import annotations

import json
from pathlib import Path

from rolling_chat.commands.registry import parse, run_command
from rolling_chat.settings.schema import Settings
from tests.support.commands import PlainContext
from tests.support.hooks import hooked
from tests.support.tui import MODEL, make_chat


async def run(context: PlainContext) -> None:
    parsed = parse("/hooks")
    assert parsed is not None
    await run_command(parsed, context)


async def test_they_are_listed_in_the_order_in_which_they_run(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / ".agents").mkdir(parents=True)
    events = {"Stop": [{"command": "their\x1b[2Js"}], "Later": []}
    (folder / ".agents" / "hooks.json").write_text(json.dumps({"hooks": events}))
    settings = Settings(model=MODEL, hooks=hooked(Stop={"command": "mine", "matcher": "x", "timeout": 5}))
    context = PlainContext(make_chat(tmp_path, folder=folder, settings=settings))
    context.chat.trust.everything = True
    context.chat.session.read_instructions()
    await run(context)
    assert context.tables[0].rows == (
        ("Stop", "x", "mine", "5 s", "yours"),
        ("Stop", "", "their␛[2Js", "60 s", "this project's"),
    )
    assert context.said[1:] == [
        "2 hooks, in the order in which they run",
        ".agents/hooks.json: there is no event Later here; its hooks are left out.",
    ]


async def test_without_any_it_says_where_they_go(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await run(context)
    assert context.said[0].startswith("There are no hooks. Yours are in your settings")
