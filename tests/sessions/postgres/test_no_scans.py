"""No statement reads a whole table, however many sessions there are: by the server's own count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rolling_chat.agent import Chat
from rolling_chat.messages import FileTouch, Message, Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.database import Database, Row, Values
from rolling_chat.sessions.postgres.migrations import use_schema
from rolling_chat.sessions.records import AskedBy, RequestRecord, StoredSummary
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import ScriptedProvider, call, calls, collect, make_runtime, says
from tests.support.postgres import Server
from tests.support.sessions import OFFLINE, new_session

# all that grow with use; not the replies that are being written just now
_LARGE = (
    "session", "message", "request", "summary", "file", "basis", "claim", "writer", "follower", "share",
    "chunk", "file_change", "file_content", "picture", "picture_of", "learned", "measured",
)  # fmt: skip

# many sessions of the same login, each with a few messages, and as many rows of everything else
_FILL = """
    SET search_path TO rolling_chat;
    INSERT INTO session (
        owner, id, short, title, title_given, title_says, folder, model, rolling, parent, is_spoken_in,
        created_at, updated_at
    )
    SELECT 'LOGIN', gen_random_uuid()::text, right(md5(n::text), 8), 'title', true, true,
        '/folder' || n % 100, 'm', false, '', true, n, n FROM generate_series(1, 4000) AS n;
    INSERT INTO message (
        id, owner, session, run, depth, turn, role, content, ending, created_at, words
    )
    SELECT gen_random_uuid()::text, owner, number, -number, n, n, 'user', 'word' || n, 'complete', n,
        ('word' || n)::tsvector
    FROM session, generate_series(1, 5) AS n;
    INSERT INTO request (
        id, short, owner, session, head, model, plan, settings_digest, pipeline_version, wire_hash, estimated,
        bound, input_tokens, output_tokens, cached_read_tokens, cached_write_tokens, reasoning_tokens,
        seconds, created_at, error, totals, purpose
    )
    SELECT gen_random_uuid()::text, 'q' || number, owner, number, '', 'm', 'null', md5(number::text), 1, 'h',
        1, 1, 1, 1, 1, 1, 1, 1, created_at, '', '{}', 'answer' FROM session;
    INSERT INTO summary (
        id, owner, session, generation, made_from, through, text, digest, made_by, tokens_before,
        tokens_after, created_at, skipped
    )
    SELECT message.id, owner, session, depth, 0, number, 'text', '', '', 1, 1, 1, ''
    FROM message WHERE depth = 1;
    INSERT INTO file (message, owner, session, path, action, sha256)
    SELECT number, owner, session, '/path' || number, 'read', '' FROM message;
    INSERT INTO basis (owner, digest, value) SELECT owner, md5(id), '{}' FROM session;
    INSERT INTO writer (store, owner, pid, host, machine, started)
    SELECT 'store' || number, owner, number, 'h', 'm', 's' FROM session;
    INSERT INTO claim (session, owner, store, since) SELECT number, owner, 'store' || number, 1 FROM session;
    INSERT INTO follower (session, owner, store, until)
    SELECT number, owner, 'other' || number, now() + interval '1 hour' FROM session;
    INSERT INTO share (session, owner, member, may_write) SELECT number, owner, 'dave', true FROM session;
    INSERT INTO growing (message, owner, session, store)
    SELECT number, owner, session, 'store' || session FROM message WHERE depth = 5;
    INSERT INTO chunk (message, owner, session, place, text, reasoning)
    SELECT message, owner, session, 0, 'text', '' FROM growing;
    INSERT INTO file_change (batch, place, message, owner, session, path, links, folders)
    SELECT 'batch' || number, 0, number, owner, session, '/path' || number, 1, '[]' FROM message;
    INSERT INTO file_content (owner, sha256, data, kept_at)
    SELECT owner, md5(id), 'data', 1 FROM message;
    INSERT INTO picture (owner, sha256, media_type, data)
    SELECT owner, encode(sha256(id::bytea), 'hex'), 'image/png', id::bytea FROM message;
    INSERT INTO picture_of (message, owner, session, sha256)
    SELECT number, owner, session, encode(sha256(id::bytea), 'hex') FROM message;
    INSERT INTO learned (owner, model, address, limit_tokens, learned_at)
    SELECT owner, 'm' || number, '', 1, 1 FROM session;
    INSERT INTO measured (owner, model, address, value) SELECT owner, 'm' || number, '', '{}' FROM session;
    ANALYZE;
"""


_GRANT = """
    DO $$ BEGIN CREATE ROLE carol LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT USAGE ON SCHEMA rolling_chat TO carol;
    GRANT ALL ON ALL TABLES IN SCHEMA rolling_chat TO carol;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA rolling_chat TO carol;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rolling_chat TO carol;
"""

pytestmark = pytest.mark.slow


@pytest.fixture(params=["owner", "member"])
def address(request: pytest.FixtureRequest, server: Server, database: str) -> str:
    """A database with much in it, as its owner sees it, or a member whom policies hold."""
    login = "postgres"
    if request.param == "member":
        server.sql(_GRANT, database)
        login = "carol"
    server.sql(_FILL.replace("LOGIN", login), database)
    return server.url(database, login)


@contextmanager
def no_scan(server: Server, database: str) -> Iterator[None]:
    """What is done meanwhile reads no row by going through a table."""
    before = scanned(server, database)
    yield
    after = scanned(server, database)
    assert {table: after[table] - before[table] for table in _LARGE} == dict.fromkeys(_LARGE, 0)


def test_whatever_a_chat_does_reads_by_an_index(server: Server, database: str, address: str) -> None:
    with no_scan(server, database):
        store = open_store(address)
        use(store)
        store.close()


async def test_each_statement_of_a_turn_reads_by_an_index(
    server: Server, database: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, Values] = {}
    run = Database.run

    def recorded(given: Database, statement: str, values: Values | None = None, **rest: Any) -> list[Row]:
        sent.setdefault(statement, values or {})
        return run(given, statement, values, **rest)

    monkeypatch.setattr(Database, "run", recorded)
    with no_scan(server, database):
        await turns(address, tmp_path)
    assert len(sent) > 15
    with psycopg.connect(address) as connection:
        use_schema(connection)
        for statement, values in sent.items():
            explain = f"EXPLAIN (FORMAT JSON) {statement}"
            ((plan,),) = connection.execute(explain, {"again": False, **values}).fetchall()
            assert scans(plan) == [], statement


def scans(plan: object) -> list[str]:
    """The large tables that a plan goes through."""
    if isinstance(plan, list):
        return [name for part in plan for name in scans(part)]
    if not isinstance(plan, dict):
        return []
    is_scan = plan.get("Node Type") == "Seq Scan" and plan.get("Relation Name") in _LARGE
    below = [name for part in plan.values() for name in scans(part)]
    return [str(plan["Relation Name"]), *below] if is_scan else below


async def turns(address: str, tmp_path: Path) -> None:
    """Take turns of a chat, with calls, a change of a file, a task, a stop and moves, then open it again."""
    provider = ScriptedProvider(
        calls(call("list_files"), call("read_file", '{"path": "a.txt"}', "c2"), text="Let me see."),
        calls(call("write_file", '{"path": "a.txt", "content": "two"}', "c3")),
        calls(call("task", '{"prompt": "count"}', "c4")),
        says("Three."),
        says("So it is."),
    )
    settings = Settings(agent=AgentSettings(approvals="edits", max_cost_day=5.0, max_cost_session=5.0))
    runtime = make_runtime(tmp_path, provider, settings=settings)
    (runtime.folder / "a.txt").write_text("one")
    runtime.store.close()
    runtime = replace(runtime, store=open_store(address))
    chat = Chat.open(runtime)
    await collect(chat.send("What is here?"))
    await collect(chat.send("And there?"))
    session = chat.session
    session.rename("A title")
    session.history.undo()
    session.history.redo()
    session.export("json")
    await session.files.states()
    chat.fork()
    chat.resume(session.info.id)
    chat.saved.preview(session.info.id)
    chat.dispose()


def use(store: SessionStore) -> None:
    """Do what a chat does, once."""
    session = new_session(store, folder="/folder7").id
    store.claim(session)
    asked = store.append(session, Message("user", "word3 zebra"), [FileTouch("/path1", "read", "x")])
    record = RequestRecord("", session, asked.id, "m", {"a": 1}, "digest", 1, "h", 1, 1)
    request = store.log_request(record, {})
    reply = store.begin_reply(session, OFFLINE)
    store.grow_reply(reply, "text")
    store.seal_reply(reply, Message("assistant", "text"))
    store.finish_request(request, usage=Usage(1, 1), seconds=1.0)
    store.publish_summary(session, StoredSummary("text", asked.id), expected=0)
    store.update_session(session, plan={"b": 1})
    store.save_counts({asked.id: {"o200k_base": 3}})
    for read in (
        store.session, store.branch, store.summary, store.summaries, store.state, store.usage, store.requests,
        store.left_branches, store.is_blank, store.cache_misses, store.files, store.tasks, store.last_answer,
    ):  # fmt: skip
        read(session)
    store.stretch(session, 1)
    store.request_sizes(session, 5)
    store.newest("/folder7")
    store.sessions("/folder7", limit=20)
    store.task(AskedBy(reply, 0))
    store.last_known("/path1", asked.id)
    store.is_on_branch(asked.id, reply)
    store.search("zebra")
    store.search("zebra", session)
    store.move_head(session, asked.id, "m")
    fork = store.fork(session)
    copies = [store.copy_of(one) for one in (session, fork.id)]
    store.missing(store.ids_in(session))
    for present in (True, False):
        if not present:
            store.delete(session)
            store.delete(fork.id)
        for copy in copies:
            store.adopt(copy)


def scanned(server: Server, database: str) -> dict[str, int]:
    """How many rows of each table were read by going through it."""
    found = server.sql(
        "SELECT json_object_agg(relname, seq_tup_read) FROM pg_stat_user_tables"
        " WHERE schemaname = 'rolling_chat'",
        database,
    )
    counts: dict[str, int] = json.loads(found)
    return counts
