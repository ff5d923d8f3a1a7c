"""Ctrl+C that waits for the end of what must not be cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """A context manager in which Ctrl+C raises KeyboardInterrupt at once, or at the end of `held_back`."""

    def __init__(self) -> None:
        self._holds = False
        self._came = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let a block run to its end, and raise KeyboardInterrupt then."""
        self._holds = True
        try:
            yield
        finally:
            self._holds = False
        if self._came:
            raise KeyboardInterrupt

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if self._holds:
            self._came = True
        else:
            raise KeyboardInterrupt
