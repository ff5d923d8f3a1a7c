"""What single acts cost the database: a piece of a reply, a sign of life, a session opened, one deleted."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from contextlib import closing

import psycopg

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import KeptChange, KeptVersion
from rolling_chat.sessions.store import SessionStore
from tests.benchmarks.scaling.chats import counted_statements
from tests.benchmarks.scaling.counters import counters, kept, wal_position
from tests.benchmarks.scaling.team import KEEPER, login
from tests.benchmarks.scaling_page import PAGE
from tests.support.postgres import Server
from tests.support.sessions import OFFLINE

_TIMES = 300
_READ = 300  # messages that the program reads when it opens a session
_CONTENTS = """
    INSERT INTO rolling_chat.file_content (owner, sha256, data, kept_at)
    SELECT 'OWNER', md5(n::text), decode(repeat(md5(n::text), 60), 'hex'), 4e9
    FROM generate_series(1, 10000) AS n;
    ANALYZE rolling_chat.file_content;
"""  # of 960 bytes, as if kept just now
_PIECE = "words of it "


def single_units(server: Server, database: str) -> dict[str, float]:
    """Return what single acts of one user cost, one after the other."""
    with closing(open_store(server.url(database, login(0)))) as store:
        session = store.create_session(folder="/apart", model="m", rolling=True, title="read").id
        store.claim(session)
        store.append_all(session, (Message("user", f"{n} " + "words " * 60) for n in range(_READ)))
        server.sql("VACUUM ANALYZE", database)
        return {
            "piece_wal_bytes": _piece_wal(server, store, session),
            "beat_wal_bytes": _beat_wal(server, store),
            **_opening(server, database, session),
            **_policies(server, database, session),
            **_keeping(server, database, store, session),
        }


def _piece_wal(server: Server, store: SessionStore, session: str) -> float:
    reply = store.begin_reply(session, OFFLINE)
    each = _wal_of(server, lambda: store.grow_reply(reply, _PIECE))
    store.seal_reply(reply, Message("assistant", _PIECE * _TIMES))
    return each


def _beat_wal(server: Server, store: SessionStore) -> float:
    heartbeat = store._heartbeat
    return _wal_of(
        server, lambda: heartbeat._database.run("SELECT beat(%(store)s, %(process)s)", heartbeat._values)
    )


def _wal_of(server: Server, act: Callable[[], object]) -> float:
    act()  # the pages that it writes to are in the WAL whole
    before = wal_position(server)
    for _ in range(_TIMES):
        act()
    return (wal_position(server) - before) / _TIMES


def _opening(server: Server, database: str, session: str) -> dict[str, float]:
    before = counters(server, database)
    with counted_statements() as statements, closing(open_store(server.url(database, login(0)))) as store:
        store.claim(session)
        store.session(session)
        store.stretch(session, _READ)
        store.state(session)
        store.usage(session)
        store.summary(session)
    read = counters(server, database) - before
    return {"opening_transactions": sum(statements.values()), "opening_pages": read.pages_read}


def _policies(server: Server, database: str, session: str) -> dict[str, float]:
    """Read alternately as a login that the policies hold, and as one that none does."""
    with (
        closing(open_store(server.url(database, login(0)))) as member,
        closing(open_store(server.url(database))) as administrator,
    ):
        times: dict[str, list[float]] = {"read_ms": [], "read_ms_without_policies": []}
        for _ in range(_TIMES):
            for store, name in zip((member, administrator), times, strict=True):
                began = time.perf_counter()
                store.stretch(session, _READ)
                times[name].append(1000 * (time.perf_counter() - began))
        return {name: statistics.median(taken) for name, taken in times.items()}


def _keeping(server: Server, database: str, store: SessionStore, session: str) -> dict[str, float]:
    """Keep what a file was before an edit, for a user who has few contents of files and for one with many."""
    message = store.append(session, Message("assistant", "an edit")).id

    def keep(number: int) -> None:
        change = KeptChange(message, "/f", KeptVersion(f"{number:064}"), None)
        store.kept_files.keep([change], [b"content"])

    few = _milliseconds(keep, 0)
    server.sql(_CONTENTS.replace("OWNER", login(0)), database)
    return {"keep_ms": few, "keep_ms_of_many": _milliseconds(keep, _TIMES)}


def _milliseconds(act: Callable[[int], None], first: int) -> float:
    times = []
    for number in range(first, first + _TIMES):
        began = time.perf_counter()
        act(number)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def deleting_units(server: Server, database: str, users: int) -> dict[str, float]:
    """Delete all sessions of half of the users one by one, and of the others by the page's statements."""
    half = users // 2
    with closing(psycopg.connect(server.url(database, KEEPER), autocommit=True)) as keeper:
        delete_old(keeper)  # those of others, which nobody used for years
    before, wal = kept(server, database).rows, wal_position(server)
    began = time.perf_counter()
    for number in range(half):
        with closing(open_store(server.url(database, login(number)))) as store:
            for info in store.sessions():
                store.delete(info.id)
    took = time.perf_counter() - began
    after, written = kept(server, database).rows, wal_position(server) - wal
    requests = before["request"] - after["request"]

    server.sql("UPDATE rolling_chat.session SET updated_at = 0", database)
    server.sql("UPDATE rolling_chat.file_content SET kept_at = 0", database)
    with closing(psycopg.connect(server.url(database, KEEPER), autocommit=True)) as keeper:
        began = time.perf_counter()
        delete_old(keeper)
        took_at_once = time.perf_counter() - began
    left = kept(server, database).rows
    assert not any(left[table] for table in ("session", "message", "request", "file", "basis")), left
    began = time.perf_counter()
    server.sql("VACUUM", database)
    return {
        "delete_wal_bytes": written / requests,
        "deletes_a_second": requests / took,
        "batch_deletes_a_second": after["request"] / took_at_once,
        "vacuum_ms": 1000 * (time.perf_counter() - began) / after["request"],
    }


def delete_old(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Delete what the page deletes, by the statements that it shows; return how many sessions."""
    first, batch, *rest = statements_of_page("retention")
    connection.execute(first)
    deleted = 0
    while True:
        cursor = connection.execute(batch)
        row = cursor.fetchone()
        assert row is not None
        if not row[0]:
            break
        deleted += int(str(row[0]))
    for statement in rest:
        connection.execute(statement)
    return deleted


def statements_of_page(name: str) -> list[str]:
    """Return the statements of a block of SQL in the page, which has a mark of that name before it."""
    found = re.search(rf"<!-- {name} -->\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"SCALING.md has no block {name!r}"
    return [statement for statement in re.split(r";\n(?:\n|$)", found.group(1)) if statement.strip()]
