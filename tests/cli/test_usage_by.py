"""`rolling-chat usage`: what all sessions used, by day, model or folder."""

from __future__ import annotations

from datetime import datetime

import pytest

from rolling_chat.messages import Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import RequestRecord
from tests.support.program import Program

# local noon: a day is the user's
FIRST, SECOND = (datetime(2026, 4, day, 12).timestamp() for day in (11, 12))  # noqa: DTZ001


@pytest.fixture
def sent(program: Program) -> Program:
    home = program.home / "rolling-chat"
    store = open_store(home / "sessions.db")
    for folder, model, at, usage, purpose in (
        ("/src/a", "openai/x", FIRST, Usage(1_000, 50, 800, cost=0.5), "answer"),
        ("/src/a", "openai/x", SECOND, Usage(2_000, 60, cost=0.25), "summary"),
        ("/src/b", "nobody/y", SECOND, Usage(10, 1), "answer"),
    ):
        session = store.create_session(folder=folder, model=model, rolling=False)
        record = RequestRecord(
            "", session.id, "", model, None, "", 1, "", 0, 0, created_at=at, purpose=purpose
        )
        store.finish_request(store.log_request(record), usage=usage, seconds=1.0)
        store.release(session.id)
    store.close()
    return program


@pytest.mark.parametrize(
    ("by", "names", "costs"),
    [
        ("day", ["2026-04-11", "2026-04-12"], [0.5, 0.25]),
        ("model", ["nobody/y", "openai/x"], [None, 0.75]),
        ("folder", ["/src/a", "/src/b"], [0.75, None]),
    ],
)
def test_usage_is_added_up(sent: Program, by: str, names: list[str], costs: list[float | None]) -> None:
    rows = sent("usage", "--by", by, "--json").json
    assert [row["name"] for row in rows] == names
    assert [row["usage"]["cost"] for row in rows] == costs
    assert sum(row["summaries"] for row in rows) == 1
    assert sum(row["usage"]["cached_read_tokens"] for row in rows) == 800


def test_the_table_says_which_costs_are_unknown(sent: Program) -> None:
    out = sent("usage", "--by", "model").out
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["nobody/y", "1", "10", "0", "0", "1", "0", "unknown"]
    assert lines[2] == ["openai/x", "2", "3,000", "800", "0", "110", "1", "$0.75"]
    assert "The price of 1 request is unknown" in out


def test_without_a_request_it_says_so(program: Program) -> None:
    assert program("usage").out == "Nothing was sent yet.\n"
