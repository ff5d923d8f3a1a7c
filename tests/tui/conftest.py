"""What every test of the screen shares."""

from __future__ import annotations

import asyncio

import pytest
import textual.app
import textual.pilot
from textual import _wait
from textual._context import active_app

# turns of the event loop without a message anywhere: what a message sets off comes within a few
_QUIET_TURNS, _MOST_TURNS = 8, 2_000


@pytest.fixture(autouse=True)
def _look_at_messages_and_not_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every key Textual sleeps 20 ms and more, to see by its processor time whether the program works.

    On a busy machine that is no sign, and most of the time of these tests went into it. So: a quarter of
    that, and then until no message and no layout waits. What comes later is awaited by name: `wait_until`.
    """
    look = _wait.wait_for_idle

    async def wait_for_idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
        await look(min_sleep, max_sleep)
        quiet = 0
        for _ in range(_MOST_TURNS):
            await asyncio.sleep(0)
            quiet = 0 if _has_work() else quiet + 1
            if quiet == _QUIET_TURNS:
                return

    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 1 / 200)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 1 / 200 / 20)
    monkeypatch.setattr(textual.app, "wait_for_idle", wait_for_idle)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", wait_for_idle)


def _has_work() -> bool:
    app = active_app.get()
    screens = app.screen_stack if app.is_running else []
    pumps = [app, *(node for screen in screens for node in screen.walk_children(with_self=True))]
    waits = any(not pump._message_queue.empty() for pump in pumps)
    return waits or any(screen._layout_required for screen in screens)
