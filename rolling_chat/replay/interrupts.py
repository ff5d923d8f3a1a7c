"""Defer Ctrl+C until the end of a block that must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Run a block to its end, and handle a Ctrl+C during the block afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        signal.raise_signal(signal.SIGINT)
