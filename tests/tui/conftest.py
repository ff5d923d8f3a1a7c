"""What every test of the screen shares."""

from __future__ import annotations

import pytest
from textual import _wait


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every key Textual sleeps 20 ms and more, to see whether the program works on.

    A quarter of that is as good a look, and most of the time of these tests went into it. What comes
    later than a key's own work is awaited by name, with `wait_until`.
    """
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 1 / 200)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 1 / 200 / 20)
