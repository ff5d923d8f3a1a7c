"""The Notification hooks run when the user is called back, and not while they look at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolling_chat.settings.schema import Settings
from tests.support.hooks import hooked
from tests.support.tui import MODEL, make_app, make_chat, reads, says, type_line, wait_until


@pytest.mark.parametrize("has_focus", [True, False])
async def test_they_run_when_the_terminal_is_not_looked_at(has_focus: bool, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    hooks = hooked(Notification="cat > given.json; echo over > over", Stop="echo over > stopped")
    chat = make_chat(tmp_path, says("Done."), folder=folder, settings=Settings(model=MODEL, hooks=hooks))
    app = make_app(chat, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app._has_terminal_focus = has_focus
        await type_line(pilot, "go")
        await reads(pilot, "Done.")
        await wait_until(pilot, (folder / "stopped").exists)
        await wait_until(pilot, lambda: not pilot.app.screen.state.busy)
        if not has_focus:
            await wait_until(pilot, (folder / "over").exists)
            assert json.loads((folder / "given.json").read_text())["message"] == "the turn is over"
        await chat.session.hooks.stop()
        assert (folder / "given.json").exists() is not has_focus
