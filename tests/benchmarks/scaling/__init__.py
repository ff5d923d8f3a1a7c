"""The units behind SCALING.md: what requests cost PostgreSQL and a gateway.

Real chats run whole turns (`mix` has their texts, `chats` runs them) on a server with durable settings. The
figures are the server's own counters.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.benchmarks.scaling.chats import User
from tests.benchmarks.scaling.counters import durable, version
from tests.benchmarks.scaling.gateway import gateway_units
from tests.benchmarks.scaling.parts import deleting_units, single_units
from tests.benchmarks.scaling.requests import Plan, open_users, request_units
from tests.benchmarks.scaling_page import in_short
from tests.support.postgres import Server, own_server

_OLDEST = 18  # older ones count the flushes of the WAL and the pages written elsewhere, or not at all

DATABASE_UNITS: Mapping[str, str] = {
    "rows": "rows that a request adds for good",
    "table_bytes": "bytes that it adds to tables",
    "index_bytes": "bytes that it adds to indexes",
    "message_bytes": "bytes of both in `message`",
    "request_bytes": "bytes of both in `request`",
    "file_bytes": "bytes of both in `file`, `file_change` and `file_content`",
    "transactions": "transactions of a request, not counting the chunks of its reply",
    "pieces": "chunks in which the reply is stored as it streams, one transaction each",
    "wal_bytes": "bytes of WAL of a request, chunks included, without full-page images",
    "image_bytes": "bytes of full-page images of a request, with a checkpoint before each turn of a user",
    "image_bytes_compressed": "the same with `wal_compression = pglz`",
    "pages_written": "data pages written for a request, with checkpoints far apart",
    "spread_pages_written": "the same with a checkpoint before each turn of a user",
    "dead_rows": "row versions that a request leaves to autovacuum",
    "flushes_share": "WAL fsyncs per transaction, with 10 replies streaming at once",
    "piece_wal_bytes": "bytes of WAL of one chunk",
    "beat_wal_bytes": "bytes of WAL of one heartbeat",
    "opening_transactions": "transactions to open a session",
    "opening_pages": "pages looked at to open a session of 300 messages over a new connection",
    "busy_connections": "connections of a program after five turns",
    "connection_bytes": "memory of the server process behind a connection, without shared buffers",
    "read_ms": "milliseconds to read 300 messages as a member (policies apply)",
    "read_ms_without_policies": "the same as a superuser (no policy applies)",
    "keep_ms": "milliseconds to store the old content of an edited file",
    "keep_ms_of_many": "the same for a user who has 10,000 contents stored",
    "deletes_a_second": "requests deleted per second, session by session, by one program",
    "batch_deletes_a_second": "requests deleted per second by the statements under Retention",
    "delete_wal_bytes": "bytes of WAL to delete what one request added",
    "vacuum_ms": "milliseconds of `VACUUM` per deleted request",
}
GATEWAY_UNITS: Mapping[str, str] = {
    f"{name}_{window}": f"{what}, {window} window"
    for window in ("8k", "32k", "128k")
    for name, what in {
        "plan_bytes": "bytes of Redis for the plan of a request, on average",
        "plan_bytes_most": "bytes of Redis for the largest plan",
        "plan_ms": "milliseconds of CPU to plan a request",
        "plan_ms_new_worker": "the same in a worker that has not seen the conversation",
    }.items()
}
UNITS: Mapping[str, str] = {**DATABASE_UNITS, **GATEWAY_UNITS}


def run() -> Iterator[str]:
    """Yield the rows of the page's table of units."""
    with own_server(durable) as server:
        if version(server) < _OLDEST:
            yield f"not run: this takes the counters of PostgreSQL {_OLDEST}"
        else:
            yield f"PostgreSQL {server.sql('SHOW server_version').strip()}"
            yield from _rows(DATABASE_UNITS, _database_units(server, Plan()))
    if shutil.which("redis-server") is None:
        yield "not run: there is no redis-server"
        return
    yield from _rows(GATEWAY_UNITS, gateway_units())


def _database_units(server: Server, plan: Plan) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_units_of_chats(server, plan, Path(folder)))


async def _units_of_chats(server: Server, plan: Plan, folder: Path) -> dict[str, float]:
    running = await open_users(server, plan, folder)
    units = await request_units(running, plan)
    await asyncio.gather(*map(User.close, running.users))
    units |= single_units(server, running.database)
    return units | deleting_units(server, running.database, plan.users)


def _rows(names: Mapping[str, str], units: Mapping[str, float]) -> Iterator[str]:
    for name, what in names.items():
        yield f"| `{name}` | {in_short(units[name])} | {what} |"
