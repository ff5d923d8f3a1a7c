"""/cost tells what was used and cost, what has no known price, and why the cache was missed."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.commands import parse, run_command
from rolling_chat.messages import Usage
from rolling_chat.sessions.records import RequestRecord
from tests.support.commands import PlainContext
from tests.support.tui import make_chat


async def _cost(context: PlainContext) -> None:
    parsed = parse("/cost")
    assert parsed is not None
    await run_command(parsed, context)


def _log(context: PlainContext, usage: Usage, miss: tuple[str, int] = ("", 0), **changes: str) -> None:
    session, store = context.chat.session.info.id, context.chat._runtime.store
    record = RequestRecord("", session, "", "m", None, "d", 1, "h", 10, 12, **changes)  # type: ignore[arg-type]
    store.finish_request(store.log_request(record), usage=usage, seconds=1.0, miss=miss)


async def test_requests_without_a_price_are_said_and_summaries_stand_apart(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    _log(context, Usage(1_000, 10, cached_read_tokens=600, cached_write_tokens=300, cost=0.25))
    _log(context, Usage(500, 5))
    _log(context, Usage(200, 20, cost=0.5), purpose="summary")
    await _cost(context)
    assert "the price of 1 request is unknown, and not in the cost" in context.said
    (table,) = context.tables
    assert tuple(table.rows) == (
        ("answers", "2", "1,500", "600", "300", "15", "$0.25"),
        ("summaries", "1", "200", "0", "0", "20", "$0.50"),
        ("all", "3", "1,700", "600", "300", "35", "$0.75"),
    )


async def test_every_cause_of_a_miss_is_counted_the_dearest_first(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    for miss in (("trimmed", 3_000), ("expired", 9_000), ("trimmed", 2_000), ("", 0)):
        _log(context, Usage(10_000, 10), miss)
    await _cost(context)
    _, misses = context.tables
    assert [row[:3] for row in misses.rows] == [("expired", "1", "9,000"), ("trimmed", "2", "5,000")]
    assert all(row[3] for row in misses.rows)
