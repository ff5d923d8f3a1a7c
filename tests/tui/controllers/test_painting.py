"""What the rows below the transcript say, and which of it gives way."""

from __future__ import annotations

from pathlib import Path

from tests.support.tui import idle, make_app, make_chat, reads, says, shown, type_line, wait_until


async def test_what_a_key_has_come_to_is_read_whole_and_the_drafts_price_comes_back(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, says("Hello.")), tmp_path).run_test() as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await pilot.press(*"a draft")
        await reads(pilot, "this message +")
        await pilot.press("f6", "y")
        await reads(pilot, "Copied")
        await wait_until(pilot, lambda: "this message +" not in shown(pilot))
        await pilot.press("escape")
        await reads(pilot, "this message +")
