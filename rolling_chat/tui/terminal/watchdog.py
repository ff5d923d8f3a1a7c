"""A watchdog thread for the event loop.

A stalled loop handles neither keys nor signals. So the thread logs the stacks of all threads once per stall,
and ensures that SIGTERM and SIGHUP end the process even then, with the terminal restored.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock, Thread
from types import FrameType

STALL = 3.0  # seconds without a turn of the loop that count as a stall
MAX_QUIT = 15.0  # seconds that an orderly shutdown may take after a signal
_TICK = 0.25
_STALLED = "the event loop has not turned"
_ALARM: int = getattr(signal, "SIGALRM", 0)


class Watchdog:
    """A thread that watches the running event loop, and runs `actions` in it when their signals arrive.

    If after a signal the loop stalls for `STALL` seconds, or the action has not ended the process within
    `MAX_QUIT`, the watchdog calls `restore` and ends the process. Start and stop it in the main thread.
    """

    def __init__(
        self,
        actions: Mapping[str, Callable[[], object]],
        restore: Callable[[], None],
        log_file: Path | None = None,
    ) -> None:
        self._actions = {
            number: act for name, act in actions.items() if (number := getattr(signal, name, None))
        }
        self._restore = restore
        self._log_file = log_file
        self._beats = 0
        self._signaled = 0  # the first signal that the thread received
        self._last_signal = 0
        self._beats_before = 0  # beats at that signal; the first beat is counted at the start
        self._is_logged = False  # the current stall is in the log
        self._writing = RLock()
        self._stopped = False
        self._thread = Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._incoming, self._outgoing = socket.socketpair()
        self._incoming.settimeout(_TICK)
        self._outgoing.setblocking(False)
        try:
            # Python's own handlers wait for the main thread; these bytes arrive regardless
            self._wakeup_before = signal.set_wakeup_fd(self._outgoing.fileno(), warn_on_full_buffer=False)
            self._handlers_before = {
                number: signal.signal(number, self._on_signal)
                for number in (*self._actions, _ALARM)
                if number
            }
        except ValueError:  # not the main thread: no signals, only stacks
            self._wakeup_before, self._handlers_before = -1, {}
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, and restore the previous signal handlers."""
        if self._stopped or not self._thread.ident:
            return
        self._stopped = True
        if self._handlers_before:
            _set_alarm(0)
            signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        self._thread.join(MAX_QUIT)
        self._incoming.close()
        self._outgoing.close()

    def _beat(self) -> None:
        self._beats += 1
        if not self._stopped:
            self._loop.call_later(_TICK, self._beat)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal in the main thread, even while the event loop is blocked."""
        has_turned = self._beats != self._beats_before
        if number == _ALARM:
            # compare beats, not times: the clock continues while the whole process is suspended
            if not has_turned:
                self._end(self._last_signal, _STALLED)
        elif has_turned:
            self._last_signal, self._beats_before = number, self._beats
            _set_alarm(STALL)  # the thread may never run: a regular expression holds the GIL

    # -- in the watching thread

    def _watch(self) -> None:
        beats, still, waited, at = 0, 0.0, 0.0, time.monotonic()
        while not self._stopped:
            self._receive_signals()
            now = time.monotonic()
            # do not count time during which the whole process was suspended
            passed, at = min(now - at, 2 * _TICK), now
            waited += passed if self._signaled else 0.0
            if self._beats != beats:
                beats, still, self._is_logged = self._beats, 0.0, False
            still += passed
            if still >= STALL:
                self._log_stacks()
            if self._signaled and still >= STALL:
                self._end(self._signaled, _STALLED)
            if waited >= MAX_QUIT:
                self._end(self._signaled, f"{MAX_QUIT:.0f} s after it came")

    def _receive_signals(self) -> None:
        try:
            numbers = self._incoming.recv(64)
        except (TimeoutError, OSError):
            return
        for number in numbers:
            if number in self._actions:
                self._signaled = self._signaled or number
                with suppress(RuntimeError):  # the loop is closed: the program is ending
                    self._loop.call_soon_threadsafe(self._actions[number])

    def _log_stacks(self) -> None:
        # two threads may get here at once; the second, which ends the process, waits for the first's output
        is_mine = self._writing.acquire(timeout=STALL)
        try:
            if not self._is_logged:
                self._is_logged = True
                self._log(f"{_STALLED} for {STALL:.0f} s; every thread's stack:", stacks=True)
        finally:
            if is_mine:
                self._writing.release()

    def _end(self, number: int, why: str) -> None:
        try:
            self._restore()
            self._log_stacks()
            self._log(f"ended by signal {number}: {why}", stacks=False)
        finally:
            os._exit(128 + number)

    def _log(self, line: str, *, stacks: bool) -> None:
        """Write to the log without `logging`, whose lock the stalled thread may hold."""
        if self._log_file is None:
            return
        head = f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 {os.getpid()} ERROR rolling_chat.tui: {line}\n"
        with suppress(OSError):
            file = os.open(self._log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, head.encode())
                if stacks:
                    faulthandler.dump_traceback(file)
            finally:
                os.close(file)


def _set_alarm(seconds: float) -> None:
    """Schedule the alarm signal in `seconds`, if the system has it; 0 cancels it."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)
