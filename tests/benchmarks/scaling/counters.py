"""What a server counts of its own work, read before and after."""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tests.support.postgres import Server, as_user

_DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    "max_wal_senders": "10",
    "shared_buffers": "512MB",
    # a checkpoint only where one is asked for
    "checkpoint_timeout": "1h",
    "max_wal_size": "16GB",
    "wal_keep_size": "8GB",  # to be read again
}

PASSING = ("growing", "chunk", "claim", "writer", "follower")
"""Tables whose rows are deleted again while a session is used."""

_TOLD_WITHIN = 11.0  # seconds: an idle process of the server tells its figures after ten

_COUNTERS = """
    SELECT json_build_object(
        'wal_bytes', pg_current_wal_insert_lsn() - '0/0',
        'page_images', (SELECT wal_fpi FROM pg_stat_wal),
        'wal_flushes', (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'),
        'pages_written', (SELECT sum(write_bytes) / 8192 FROM pg_stat_io WHERE object = 'relation'),
        'dead_rows', (SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables),
        'transactions', (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),
        'pages_read', (SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()))
"""
_SIZES = """
    SELECT json_object_agg(relname, json_build_array(pg_table_size(oid), pg_indexes_size(oid))) FROM pg_class
    WHERE relnamespace = 'rolling_chat'::regnamespace AND relkind = 'r' AND relname <> 'version'
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server has done since it was started, and a database of it since it was made."""

    wal_bytes: float
    page_images: float
    wal_flushes: float
    pages_written: float
    dead_rows: float  # old versions of rows, and deleted ones
    transactions: float
    pages_read: float  # from its own memory or from the system

    def __sub__(self, before: Counters) -> Counters:
        return Counters(*(getattr(self, item.name) - getattr(before, item.name) for item in fields(Counters)))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is in a database: rows, and bytes of tables and indexes, by table."""

    rows: dict[str, int]
    table_bytes: dict[str, int]
    index_bytes: dict[str, int]


def durable(server: Server) -> Server:
    """Set a server up to lose nothing when the power fails, as one for a team is."""
    return replace(server, settings=tuple(_DURABLE.items()))


def counters(server: Server, database: str) -> Counters:
    """Return the server's counters, once all of its processes have told theirs."""
    time.sleep(_TOLD_WITHIN)
    return Counters(**json.loads(server.sql(_COUNTERS, database)))


def wal_position(server: Server) -> int:
    """Return how many bytes of WAL the server has written in its life."""
    return int(server.sql("SELECT pg_current_wal_insert_lsn() - '0/0'"))


def page_image_bytes(server: Server, start: int, end: int) -> int:
    """Return how much of a part of the WAL is images of whole pages, which checkpoints cause."""
    command = [server.binaries / "pg_waldump", "--stats", "-p", server.folder / "data" / "pg_wal"]
    command += ["-s", _as_lsn(start), "-e", _as_lsn(end)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, **as_user())
    # the columns are count, bytes of records, bytes of page images, bytes of both
    found = re.search(r"^Total +\d+ +\d+ \[.*?\] +(\d+) ", said.stdout, re.MULTILINE)
    assert found, said.stdout
    return int(found.group(1))


def _as_lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def kept(server: Server, database: str) -> Kept:
    """Return what the tables hold that sessions are kept in."""
    sizes: dict[str, list[int]] = json.loads(server.sql(_SIZES, database))
    tables = sorted(sizes.keys() - set(PASSING))
    counts = ", ".join(f"'{table}', (SELECT count(*) FROM rolling_chat.{table})" for table in tables)
    rows = json.loads(server.sql(f"SELECT json_build_object({counts})", database))
    return Kept(
        rows, {table: sizes[table][0] for table in tables}, {table: sizes[table][1] for table in tables}
    )


def version(server: Server) -> int:
    """Return the server's major version."""
    return int(server.sql("SHOW server_version_num")) // 10_000


def connection_sizes(server: Server, database: str) -> list[int]:
    """Return for each connection to a database the memory of the process that serves it.

    That is its share of what it has besides the server's buffers.
    """
    listed = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    sizes = []
    for process in server.sql(listed).split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
            sizes += [1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:")]
    return sizes
