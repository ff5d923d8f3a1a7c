"""The watch over the event loop: silent while the loop turns, one dump a stall."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from rolling_chat.tui.terminal import watchdog
from rolling_chat.tui.terminal.watchdog import Watchdog
from tests.support.patience import PATIENCE_SECONDS, eventually, wait_for


def _dumps(log: Path) -> int:
    """How many stalls of ours are in the log with their stacks; a slow machine may add some of its own."""
    text = log.read_text() if log.exists() else ""
    return sum("has not turned" in stacks and "in _stall_until" in stacks for stacks in text.split(" ERROR "))


def _stall_until(log: Path, dumps: int) -> None:
    """Keep the loop from turning until the log has so many dumps."""
    wait_for(lambda: _dumps(log) >= dumps)


async def test_each_stall_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STALL", 0.6)
    log = tmp_path / "log"
    watch = Watchdog({}, lambda: None, log)
    watch.start()
    try:
        for stall in (1, 2):
            _stall_until(log, stall)
            assert _dumps(log) == stall
            await eventually(lambda: not watch._is_logged)  # until it has seen the loop turn again
        assert log.stat().st_mode & 0o077 == 0
    finally:
        watch.stop()


def test_who_ends_the_process_lets_the_other_thread_write_the_stacks_first(tmp_path: Path) -> None:
    log, amid, go = tmp_path / "log", threading.Event(), threading.Event()
    watch = Watchdog({}, lambda: None, log)
    write = watch._log

    def slow(line: str, *, stacks: bool) -> None:
        amid.set()
        assert go.wait(PATIENCE_SECONDS)
        write(line, stacks=stacks)

    watch._log = slow  # type: ignore[method-assign]
    first = threading.Thread(target=watch._log_stacks)
    first.start()
    assert amid.wait(PATIENCE_SECONDS)
    threading.Timer(0.01, go.set).start()
    watch._log_stacks()
    assert "test_who_ends_the_process" in log.read_text()
    first.join()


@pytest.mark.skipif(not watchdog._ALARM, reason="the system has no alarm")
async def test_a_signal_after_a_long_stop_of_the_process_is_no_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[int] = []
    monkeypatch.setattr(Watchdog, "_end", lambda _watch, number, _why: ends.append(number))
    watch = Watchdog({"SIGHUP": lambda: None}, lambda: None, tmp_path / "log")
    watch.start()
    try:
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        watch._on_signal(signal.SIGHUP, None)
        assert ends == []
        watch._beat()  # the loop turns again
        watch._on_signal(watchdog._ALARM, None)
        assert ends == []
        watch._on_signal(signal.SIGHUP, None)
        watch._on_signal(watchdog._ALARM, None)
        assert ends == [signal.SIGHUP]
    finally:
        monkeypatch.undo()
        watch.stop()


async def test_a_signal_is_answered_in_the_loop_while_it_turns(tmp_path: Path) -> None:
    came = asyncio.Event()
    before = signal.getsignal(signal.SIGHUP)
    watch = Watchdog({"SIGHUP": came.set, "SIGNOT": came.set}, lambda: None, tmp_path / "log")
    watch.start()
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await came.wait()
    finally:
        watch.stop()
    assert signal.getsignal(signal.SIGHUP) is before
