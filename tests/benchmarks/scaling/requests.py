"""What requests cost the database: rows, bytes, transactions, WAL and pages."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.scaling.chats import BEAT, PIECE, User, all_turns, counted_statements
from tests.benchmarks.scaling.counters import (
    Kept,
    connection_sizes,
    counters,
    kept,
    page_image_bytes,
    wal_position,
)
from tests.benchmarks.scaling.mix import DELTAS_A_SECOND, REQUESTS
from tests.benchmarks.scaling.team import add_others, login, new_team
from tests.support.postgres import Server


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    After one turn at full speed each user has so many `turns` at the `pace` of a model, then `rounds` of one
    turn, before each of which the server makes a checkpoint.
    """

    users: int = 20
    at_once: int = 10
    turns: int = 5
    rounds: int = 2
    others: int = 200  # sessions of others between those of two users
    pace: float = DELTAS_A_SECOND


@dataclass(frozen=True, slots=True)
class Running:
    """Programs that are open."""

    server: Server
    database: str
    users: list[User]


def small_units(server: Server, folder: Path, turns: int) -> dict[str, float]:
    """Return the units that the turns of one user show: neither times nor what the load decides."""
    return asyncio.run(_small_units(server, new_team(server, 1), folder, turns))


async def _small_units(server: Server, database: str, folder: Path, turns: int) -> dict[str, float]:
    user = User(server.url(database, login(0)), folder / "user", seed=1)
    await user.turn()  # the first row of a table costs a page, and one of each of its indexes
    before, wal = kept(server, database), wal_position(server)
    with counted_statements() as statements:
        await all_turns([user], turns, at_once=1, pace=0.0)
    after, written = kept(server, database), wal_position(server) - wal
    await user.close()
    requests = turns * REQUESTS
    return {
        **_kept_units(before, after, requests),
        "transactions": _transactions(statements) / requests,
        "pieces": statements[PIECE] / requests,
        "wal_bytes": written / requests,
    }


def _transactions(statements: Counter[str]) -> int:
    return sum(count for kind, count in statements.items() if kind not in (PIECE, BEAT))


def _kept_units(before: Kept, after: Kept, requests: int) -> dict[str, float]:
    def each(now: Mapping[str, int], then: Mapping[str, int]) -> float:
        return (sum(now.values()) - sum(then.values())) / requests

    both = {
        table: after.table_bytes[table] + after.index_bytes[table] - before.table_bytes[table] - index
        for table, index in before.index_bytes.items()
    }
    return {
        "rows": each(after.rows, before.rows),
        "table_bytes": each(after.table_bytes, before.table_bytes),
        "index_bytes": each(after.index_bytes, before.index_bytes),
        "message_bytes": both["message"] / requests,
        "request_bytes": both["request"] / requests,
        "file_bytes": sum(size for table, size in both.items() if table.startswith("file")) / requests,
    }


async def open_users(server: Server, plan: Plan, folder: Path) -> Running:
    """Open the programs of all users, each with a turn behind it and the sessions of others between."""
    database = new_team(server, plan.users)
    users = []
    for number in range(plan.users):
        add_others(server, database, number, plan.others)
        user = User(server.url(database, login(number)), folder / f"{number}", seed=number)
        await user.turn()
        users.append(user)
    return Running(server, database, users)


async def request_units(running: Running, plan: Plan) -> dict[str, float]:
    """Return what a request costs while many chat, without checkpoints and with one before each turn."""
    server, database, users = running.server, running.database, running.users
    server.sql("CHECKPOINT", database)
    before, had = counters(server, database), kept(server, database)
    began = wal_position(server)
    with counted_statements() as statements:
        await all_turns(users, plan.turns, at_once=plan.at_once, pace=plan.pace)
    server.sql("CHECKPOINT", database)
    memory = connection_sizes(server, database)
    images = page_image_bytes(server, began, wal_position(server))
    done = counters(server, database) - before
    requests = len(users) * plan.turns * REQUESTS
    pieces, others = statements[PIECE], _transactions(statements)
    return {
        **_kept_units(had, kept(server, database), requests),
        "transactions": others / requests,
        "pieces": pieces / requests,
        "wal_bytes": (done.wal_bytes - images) / requests,
        "flushes_share": done.wal_flushes / (others + pieces + statements[BEAT]),
        "pages_written": done.pages_written / requests,
        "dead_rows": done.dead_rows / requests,
        "busy_connections": len(memory) / len(users),
        "connection_bytes": statistics.median(memory),
        **await _spread_units(running, plan, "off", ""),
        **await _spread_units(running, plan, "pglz", "_compressed"),
    }


async def _spread_units(running: Running, plan: Plan, compression: str, suffix: str) -> dict[str, float]:
    """Return what a request costs besides where every user has one turn between two checkpoints."""
    server, database = running.server, running.database
    server.sql(f"ALTER SYSTEM SET wal_compression = {compression}")
    server.sql("SELECT pg_reload_conf()")
    images = pages = 0.0
    for _ in range(plan.rounds):
        server.sql("CHECKPOINT", database)
        before, began = counters(server, database), wal_position(server)
        await all_turns(running.users, 1, at_once=plan.at_once, pace=plan.pace)
        server.sql("CHECKPOINT", database)
        images += page_image_bytes(server, began, wal_position(server))
        pages += (counters(server, database) - before).pages_written
    requests = len(running.users) * plan.rounds * REQUESTS
    units = {"image_bytes": images / requests, "spread_pages_written": pages / requests}
    return {f"image_bytes{suffix}": images / requests} if suffix else units
