"""Stores for tests, and a process that writes to one until it is killed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from rolling_chat.messages import MadeBy
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.sessions.sqlite.migrations import APPLICATION_ID, MIGRATIONS, add_functions
from rolling_chat.sessions.store import SessionStore

OFFLINE = MadeBy("demo", "demo/offline")

# acknowledges on stdout what the store has taken, never before
_WRITER = """
import sys
from pathlib import Path
from rolling_chat.messages import MadeBy, Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore

store = open_store(sys.argv[1])
session = sys.argv[2]
assert store.claim(session) is None
turn = 0
while True:
    store.append(session, Message("user", f"question {turn}"))
    print(f"user {turn}", flush=True)
    reply = store.begin_reply(session, MadeBy("demo", "demo/offline"))
    for piece in range(20):
        store.grow_reply(reply, f"<{turn}.{piece}>", reasoning=f"[{turn}.{piece}]")
        print(f"piece {turn} {piece}", flush=True)
    text = "".join(f"<{turn}.{piece}>" for piece in range(20))
    store.seal_reply(reply, Message("assistant", text))
    print(f"sealed {turn}", flush=True)
    turn += 1
"""


def new_session(store: SessionStore, folder: str = "/work", title: str = "") -> SessionInfo:
    """An empty session."""
    return store.create_session(folder=folder, model="demo/offline", rolling=False, title=title)


def start_writer(address: str | Path, session: str) -> subprocess.Popen[str]:
    """A process that writes turn after turn and prints a line for each thing that the store took."""
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(address), session], stdout=subprocess.PIPE, text=True
    )


def start_python(
    code: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A Python process that runs `code`, in this process's environment unless one is given."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    )


def faults_of(database: Path) -> list[str]:
    """What SQLite itself finds wrong with a database: its pages, its references, its text index."""
    connection = sqlite3.connect(database)
    try:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        found += [f"dangling: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
        connection.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
    except sqlite3.Error as error:
        found.append(str(error))
    finally:
        connection.close()
    return found


def old_store(database: Path, version: int) -> None:
    """A store as an older version of the program left it, with a session that the first one began."""
    with closing(sqlite3.connect(database)) as connection:
        add_functions(connection)
        first, *later = MIGRATIONS[:version]
        for statement in first:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO session"
            " (id, title, title_given, folder, model, rolling, parent, created_at, updated_at)"
            " VALUES ('abcdef0123', 'old', 1, '/work', 'm', 1, '', 1.0, 2.0)"
        )
        connection.execute(
            "INSERT INTO message (session, depth, role, content, ending, created_at)"
            " VALUES (1, 1, 'user', 'old', 'complete', 1.0)"
        )
        connection.execute("UPDATE session SET head = 1")
        for statement in (statement for step in later for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
