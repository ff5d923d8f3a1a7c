"""A store behind a real PgBouncer: in which mode it works, and what breaks in the others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.migrations import use_schema
from rolling_chat.sessions.store import SessionStore
from tests.benchmarks.scaling.team import login, new_team
from tests.support.litellm_proxy import free_port
from tests.support.patience import wait_for
from tests.support.postgres import ADMIN, Server, as_user, new_database
from tests.support.sessions import OFFLINE, new_session

pytestmark = pytest.mark.slow

ADA, BOB = login(0), login(1)
_CONFIG = """[databases]
* = host={server} {forced}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
"""


@pytest.fixture
def team(server: Server) -> str:
    return new_team(server, 2)


@contextmanager
def pgbouncer(server: Server, mode: str, forced: str = "") -> Iterator[int]:
    """Run a PgBouncer in front of a server, and yield its port; `forced` is a login that it uses for all."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("there is no pgbouncer (Debian: apt-get install pgbouncer)")
    port = free_port()
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in (ADMIN, ADA, BOB)))
        (folder / "config").write_text(
            _CONFIG.format(
                server=server.folder,
                forced=f"user={forced}" if forced else "",
                port=port,
                folder=folder,
                mode=mode,
            )
        )
        command = [program, "-q", folder / "config"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **as_user())  # type: ignore[call-overload]
        try:
            wait_for(lambda: _answers(port, process))
            yield port
        finally:
            process.terminate()
            process.wait()


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "pgbouncer has ended"
    try:
        psycopg.connect(f"host=127.0.0.1 port={port} user={ADMIN} dbname=postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def address(port: int, database: str, user: str) -> str:
    return f"postgresql://{user}@127.0.0.1:{port}/{database}"


def test_pooling_by_session_works_and_saves_no_connection(server: Server, team: str) -> None:
    with (
        pgbouncer(server, "session") as port,
        closing(open_store(address(port, team, ADA))) as here,
        closing(open_store(address(port, team, ADA))) as there,
    ):
        session = new_session(here).id
        here.claim(session)
        assert there.claim(session) is not None
        wait_for(lambda: there.has_news(session))
        wait_for(lambda: not there.has_news(session))
        use(here, session)
        wait_for(lambda: there.has_news(session))
        assert len(there.branch(session)) == 2
        own = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{team}' AND usename = '{ADA}'"
        assert int(server.sql(own)) >= 3


def test_pooling_by_transaction_breaks_what_the_driver_prepares(server: Server, team: str) -> None:
    with (
        pgbouncer(server, "transaction") as port,
        closing(psycopg.connect(address(port, team, ADA), autocommit=True)) as first,
        closing(psycopg.connect(address(port, team, ADA), autocommit=True)) as second,
    ):
        run_often(first)
        with pytest.raises(errors.DuplicatePreparedStatement):  # it has the connection that the first had
            run_often(second)


def test_pooling_by_transaction_forgets_the_path_and_who_listens(server: Server, team: str) -> None:
    with (
        pgbouncer(server, "transaction") as port,
        closing(psycopg.connect(address(port, team, ADA), autocommit=True)) as ada,
        closing(psycopg.connect(address(port, team, ADA))) as other,
    ):
        use_schema(ada)
        ada.execute("LISTEN told")
        other.execute("SELECT 1")  # its transaction has the connection that ada had
        with pytest.raises(errors.UndefinedTable):
            ada.execute("SELECT FROM session")
        ada.execute("NOTIFY told")
        assert list(ada.notifies(timeout=1)) == []


def test_pooling_by_transaction_lets_the_tables_be_made(server: Server) -> None:
    empty = new_database(server, empty=True)
    with pgbouncer(server, "transaction") as port:
        open_store(address(port, empty, ADMIN)).close()
    assert server.sql("SELECT number FROM rolling_chat.version", empty)


def test_a_login_forced_by_the_pooler_is_everybody(server: Server, team: str) -> None:
    with (
        pgbouncer(server, "session", forced=ADA) as port,
        closing(open_store(address(port, team, ADA))) as ada,
        closing(open_store(address(port, team, BOB))) as bob,
    ):
        session = new_session(ada).id
        use(ada, session)
        assert [info.id for info in bob.sessions()] == [session]


def run_often(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Run a statement until the driver prepares it, which the sixth time does."""
    for number in range(7):
        connection.execute("SELECT %s::integer", (number,))


def use(store: SessionStore, session: str) -> None:
    store.append(session, Message("user", "zebra"))
    reply = store.begin_reply(session, OFFLINE)
    store.grow_reply(reply, "text")
    store.seal_reply(reply, Message("assistant", "text"))
    assert store.search("zebra")
