"""No statement reads a whole table, however many sessions there are: by the server's own count."""

from __future__ import annotations

import json

import pytest

from rolling_chat.messages import FileTouch, Message, Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import AskedBy, RequestRecord, StoredSummary
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import Server
from tests.support.sessions import OFFLINE, new_session

_LARGE = ("session", "message", "request", "summary", "file")

# many sessions of the same login, each with a few messages
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
    ANALYZE;
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_member", [False, True])
def test_whatever_a_chat_does_reads_by_an_index(server: Server, database: str, is_member: bool) -> None:
    login = "postgres"
    if is_member:  # whom policies hold
        server.sql("DROP ROLE IF EXISTS carol; CREATE ROLE carol LOGIN", database)
        server.sql("GRANT USAGE ON SCHEMA rolling_chat TO carol", database)
        server.sql("GRANT ALL ON ALL TABLES IN SCHEMA rolling_chat TO carol", database)
        server.sql("GRANT ALL ON ALL SEQUENCES IN SCHEMA rolling_chat TO carol", database)
        server.sql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rolling_chat TO carol", database)
        login = "carol"
    server.sql(_FILL.replace("LOGIN", login), database)
    before = scanned(server, database)
    store = open_store(server.url(database, login))
    use(store)
    store.close()
    after = scanned(server, database)
    assert {table: after[table] - before[table] for table in _LARGE} == dict.fromkeys(_LARGE, 0)


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
