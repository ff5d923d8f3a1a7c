"""A store on disk and one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a store will be."""
    return tmp_path / "data" / "sessions.db"


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, database: Path) -> Iterator[SessionStore]:
    """An empty store."""
    opened = open_store(database if request.param == "disk" else None)
    yield opened
    opened.close()
