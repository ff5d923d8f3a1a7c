"""The figures that the gauge shows, from one report to the next."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from rolling_chat.tui.controllers.meter import Meter
from tests.support.agent import ScriptedProvider, collect, make_runtime, says

SETTINGS = Settings(agent=AgentSettings(tools="none"), context=ContextSettings(reserved_output_tokens=200))


def turns_left(meter: Meter) -> int:
    report = meter.reading()
    assert report is not None
    assert report.turns_left is not None
    return report.turns_left


async def test_turns_left_never_rise_while_the_window_fills_and_do_after_an_undo(tmp_path: Path) -> None:
    replies = ["It is so. " * 200] * 2 + ["So. "] * 4
    provider = ScriptedProvider(*map(says, replies))
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=12_000)
    chat = Chat.open(runtime)
    meter = Meter(chat, lambda: None)
    meter.begin()
    seen, paces = [], []
    for number in range(len(replies)):
        await collect(chat.send(f"Question {number}?"))
        seen.append(turns_left(meter))
        paces.append(chat.session.preview.report().turns_left)
        assert meter.reading() == meter.reading()  # looking twice changes nothing
    assert max(paces[3:]) > min(paces[:3])  # by itself the pace would say more
    assert seen == sorted(seen, reverse=True)
    before = seen[-1]
    chat.session.history.undo()
    freed = meter.reading()
    assert freed is not None
    assert (freed.turns_left or 0) > before
    assert meter.reading() == freed
    runtime.store.close()
