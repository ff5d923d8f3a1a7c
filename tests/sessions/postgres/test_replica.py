"""A store on a read replica: what is read there, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreError
from tests.benchmarks.scaling.counters import durable
from tests.benchmarks.scaling.team import login, new_team
from tests.support.patience import PATIENCE_SECONDS
from tests.support.postgres import ADMIN, Server, as_user, own_server
from tests.support.sessions import new_session

pytestmark = pytest.mark.slow

ADA, BOB = login(0), login(1)


@contextmanager
def replica_of(server: Server) -> Iterator[Server]:
    """Run a server that follows another one."""
    folder = Path(tempfile.mkdtemp(prefix="rc-pg-"))
    owner = server.folder.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    replica = replace(server, folder=folder)
    copy = [server.binaries / "pg_basebackup", "-h", server.folder, "-U", ADMIN, "-D", folder / "data"]
    subprocess.run([*copy, "-R", "-c", "fast", "--no-sync"], check=True, **as_user())  # type: ignore[call-overload]
    try:
        replica.start()
        yield replica
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            replica.crash()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_replica_is_for_reading() -> None:
    with own_server(durable) as server:
        team = new_team(server, 2)
        with (
            replica_of(server) as replica,
            closing(open_store(server.url(team, ADA))) as ada,
            closing(open_store(replica.url(team, ADA))) as reading,
            closing(open_store(replica.url(team, BOB))) as bob,
        ):
            session = new_session(ada, title="zebras").id
            ada.append(session, Message("user", "zebra"))
            until = time.monotonic() + PATIENCE_SECONDS
            while not reading.sessions():
                assert time.monotonic() < until
            assert [message.text for message in reading.branch(session)] == ["zebra"]
            assert [hit.session_id for hit in reading.search("zebra")] == [session]
            assert reading.requests(session) == reading.usage_rows("day") == []
            assert bob.sessions() == bob.search("zebra") == []
            with pytest.raises(StoreError, match="read-only transaction"):
                reading.claim(session)
            with pytest.raises(StoreError, match="read-only transaction"):
                reading.append(session, Message("user", "more"))
            both = f"{replica.url(team, ADA)},{server.folder}&target_session_attrs=read-write"
            with closing(open_store(both)) as writing:
                writing.append(session, Message("user", "more"))
            with (
                closing(psycopg.connect(replica.url(team, ADA))) as connection,
                pytest.raises(errors.ReadOnlySqlTransaction, match="LISTEN"),
            ):
                connection.execute("LISTEN rolling_chat_any")
