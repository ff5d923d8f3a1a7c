"""What an episode finds lost is lost."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from tests.soak.invariants import broken_store


@pytest.mark.parametrize(("text", "found"), [("a\nsay7x b", []), ("a", ["lost: ['say7x']"])])
def test_a_mark_after_a_line_break_is_found(tmp_path: Path, text: str, found: list[str]) -> None:
    database = tmp_path / "sessions.db"
    with closing(open_store(database)) as store:
        session = store.create_session(folder=str(tmp_path), model="demo", rolling=True)
        store.append(session.id, Message("user", text))
    assert broken_store(database, {"say7x"}, random.Random(1)) == found
