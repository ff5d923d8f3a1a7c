"""What the rows below the transcript say, and which of it gives way."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from rolling_chat.messages import Usage
from rolling_chat.providers.protocol import TextDelta
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.tui import (
    Clock,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    type_line,
    wait_until,
)


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


@pytest.mark.parametrize(
    ("size", "line"),
    [
        ((80, 24), r"cache cold: \d\.\dk tokens, about \$0\.00\d+"),
        (
            (160, 50),
            r"this message \+\d+ tokens · cache cold: \d\.\dk tokens at full price, about \$0\.00\d+",
        ),
    ],
)
async def test_the_caches_time_runs_out_and_a_draft_says_what_a_cold_one_costs(
    tmp_path: Path, size: tuple[int, int], line: str
) -> None:
    chat, clock = make_chat(tmp_path, says("Hello.", usage=Usage(2_000, 20))), Clock()
    chat._runtime.clock = clock
    async with make_app(chat, tmp_path, first="so it is " * 250).run_test(size=size) as pilot:
        await reads(pilot, "cache 5m")
        await idle(pilot)
        clock.pass_(90)
        screen_of(pilot)._painter.follow_cache()
        await reads(pilot, "cache 3m")
        await pilot.press(*"a draft")
        await reads(pilot, "this message +")
        clock.pass_(300)
        screen_of(pilot)._painter.follow_cache()
        await wait_until(pilot, lambda: re.search(line, shown(pilot)) is not None)


async def test_what_streams_in_is_painted_soon_however_long_the_last_paint_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = Transcript.show

    def slowly(self: Transcript, items: ItemList) -> None:
        show(self, items)
        self.paint_cost = 60.0  # seconds, by which it would be painted again in three minutes

    monkeypatch.setattr(Transcript, "show", slowly)
    goes_on, ends, clock = asyncio.Event(), asyncio.Event(), Clock()
    answer = [TextDelta("One. "), goes_on, TextDelta("Two."), ends, *says("One. Two.")[-1:]]
    app = make_app(make_chat(tmp_path, answer), tmp_path, clock=clock)
    async with app.run_test() as pilot:
        await type_line(pilot, "count")
        state = screen_of(pilot).state
        for text, event in (("One.", goes_on), ("One. Two.", ends)):
            await wait_until(pilot, lambda text=text: any(text in item.text for item in state.items))
            clock.pass_(0.05)
            await reads(pilot, text)
            assert state.busy
            event.set()
        await idle(pilot)
