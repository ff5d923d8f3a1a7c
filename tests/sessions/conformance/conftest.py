"""Every store that there is, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.support.stores import PLACES, Place


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a store will be kept, for tests that open it more than once."""
    return PLACES[request.param](tmp_path)


@pytest.fixture(params=[*PLACES, "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    """An empty store."""
    opened = open_store(None) if request.param == "memory" else PLACES[request.param](tmp_path).open()
    yield opened
    opened.close()
