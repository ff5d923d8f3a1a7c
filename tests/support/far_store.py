"""A store on this machine that says it is on another, and notes who calls it from an event loop."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any, cast

from rolling_chat.sessions.store import SessionStore

_COST_NOTHING = {"is_remote", "has_news", "hurry"}
_PARTS = {"models", "kept_files"}


class FarStore:
    """Calls of a store: `on_loop` are those that held an event loop up, `off_loop` all others, by name.

    Each takes so many `seconds`.
    """

    def __init__(self, store: SessionStore, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.trouble = ""
        self.on_loop: list[str] = []
        self.off_loop: list[str] = []
        self._store = store

    @property
    def as_store(self) -> SessionStore:
        """The store, to be used."""
        return cast(SessionStore, _Watched(self._store, self))

    def called(self, name: str) -> None:
        """Note a call, and take the time that it takes."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.off_loop.append(name)
        else:
            self.on_loop.append(name)
        time.sleep(self.seconds)  # as a network does


class _Watched:
    def __init__(self, watched: object, far: FarStore) -> None:
        self._watched, self._far = watched, far

    @property
    def trouble(self) -> str:
        return self._far.trouble

    @property
    def is_remote(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._watched, name)
        if name in _PARTS:
            return _Watched(value, self._far)
        return value if name in _COST_NOTHING or not callable(value) else self._noted(name, value)

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def noted(*given: Any, **named: Any) -> Any:
            self._far.called(name)
            return method(*given, **named)

        return noted
