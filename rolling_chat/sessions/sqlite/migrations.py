"""The database's tables, and the steps that bring an older database up to this version."""

from __future__ import annotations

import sqlite3

from rolling_chat.sessions.ids import id_of_time, packed, unpacked

# "RCht": tells our files from any other program's (https://sqlite.org/pragma.html#pragma_application_id)
APPLICATION_ID = 0x52436874

_FIRST = (
    # head and parent_id make the tree: a session is the way from its head to the root
    """
    CREATE TABLE session (
        number               INTEGER PRIMARY KEY AUTOINCREMENT,
        id                   TEXT NOT NULL UNIQUE,
        title                ANY NOT NULL,
        title_given          INTEGER NOT NULL,
        folder               ANY NOT NULL,
        model                ANY NOT NULL,
        rolling              INTEGER NOT NULL,
        parent               TEXT NOT NULL,
        head                 INTEGER REFERENCES message (number),
        forked_at            INTEGER REFERENCES message (number),
        conversation_summary ANY NOT NULL DEFAULT '',
        summary_through_id   TEXT NOT NULL DEFAULT '',
        pins                 TEXT NOT NULL DEFAULT '[]',
        plan                 ANY NOT NULL DEFAULT 'null',
        created_at           REAL NOT NULL,
        updated_at           REAL NOT NULL
    ) STRICT
    """,
    "CREATE INDEX session_by_folder ON session (folder, updated_at)",
    "CREATE INDEX session_by_head ON session (head)",
    "CREATE INDEX session_by_fork ON session (forked_at)",
    # AUTOINCREMENT: the number of a deleted message is never given to another
    """
    CREATE TABLE message (
        number       INTEGER PRIMARY KEY AUTOINCREMENT,
        session      INTEGER NOT NULL REFERENCES session (number),
        parent       INTEGER REFERENCES message (number),
        depth        INTEGER NOT NULL,
        role         TEXT NOT NULL,
        content      ANY NOT NULL,
        plain        TEXT,
        parts        ANY,
        tool_calls   ANY,
        tool_call_id ANY,
        name         ANY,
        extras       ANY,
        provider     ANY,
        model        ANY,
        ending       TEXT NOT NULL,
        created_at   REAL NOT NULL,
        counts       TEXT
    ) STRICT
    """,
    "CREATE INDEX message_by_session ON message (session)",
    "CREATE INDEX message_by_parent ON message (parent)",
    # a reply that is still being written, and by whom; its row goes when the reply is sealed
    """
    CREATE TABLE growing (
        message INTEGER PRIMARY KEY REFERENCES message (number) ON DELETE CASCADE,
        pid     INTEGER NOT NULL,
        host    TEXT NOT NULL,
        machine TEXT NOT NULL,
        started TEXT NOT NULL,
        store   TEXT NOT NULL
    ) STRICT
    """,
    # its text piece by piece: rewriting the whole of it each time would cost the square of it
    """
    CREATE TABLE chunk (
        number    INTEGER PRIMARY KEY,
        message   INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
        text      ANY NOT NULL,
        reasoning ANY NOT NULL
    ) STRICT
    """,
    "CREATE INDEX chunk_by_message ON chunk (message)",
    """
    CREATE TABLE claim (
        session INTEGER PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
        pid     INTEGER NOT NULL,
        host    TEXT NOT NULL,
        machine TEXT NOT NULL,
        started TEXT NOT NULL,
        store   TEXT NOT NULL,
        since   REAL NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE request (
        number              INTEGER PRIMARY KEY AUTOINCREMENT,
        session             INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
        head                TEXT NOT NULL,
        model               ANY NOT NULL,
        plan                ANY NOT NULL,
        settings_digest     TEXT NOT NULL,
        pipeline_version    INTEGER NOT NULL,
        wire_hash           TEXT NOT NULL,
        estimated           INTEGER NOT NULL,
        bound               INTEGER NOT NULL,
        input_tokens        INTEGER NOT NULL,
        output_tokens       INTEGER NOT NULL,
        cached_read_tokens  INTEGER NOT NULL,
        cached_write_tokens INTEGER NOT NULL,
        reasoning_tokens    INTEGER NOT NULL,
        cost                REAL,
        seconds             REAL NOT NULL,
        created_at          REAL NOT NULL,
        error               ANY NOT NULL,
        totals              ANY NOT NULL
    ) STRICT
    """,
    "CREATE INDEX request_by_session ON request (session)",
    # what is searched: `plain` stands in for a content that is no proper text
    "CREATE VIEW message_plain AS SELECT number, coalesce(plain, content) AS content FROM message",
    """
    CREATE VIRTUAL TABLE message_text USING fts5 (
        content, content = 'message_plain', content_rowid = 'number',
        tokenize = 'unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER message_text_added AFTER INSERT ON message BEGIN
        INSERT INTO message_text (rowid, content) VALUES (new.number, coalesce(new.plain, new.content));
    END
    """,
    """
    CREATE TRIGGER message_text_changed AFTER UPDATE OF content, plain ON message BEGIN
        INSERT INTO message_text (message_text, rowid, content)
            VALUES ('delete', old.number, coalesce(old.plain, old.content));
        INSERT INTO message_text (rowid, content) VALUES (new.number, coalesce(new.plain, new.content));
    END
    """,
    """
    CREATE TRIGGER message_text_deleted AFTER DELETE ON message BEGIN
        INSERT INTO message_text (message_text, rowid, content)
            VALUES ('delete', old.number, coalesce(old.plain, old.content));
    END
    """,
)

_SECOND = (
    # what requests were made from, besides messages; most requests of a session share one row
    "CREATE TABLE basis (digest TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
    # what a refusal taught about a model at an address; `limit_tokens` 0: nothing about its window
    """
    CREATE TABLE learned (
        model        ANY NOT NULL,
        address      ANY NOT NULL,
        limit_tokens INTEGER NOT NULL,
        factor       REAL NOT NULL,
        learned_at   REAL NOT NULL,
        PRIMARY KEY (model, address)
    ) STRICT
    """,
)

_THIRD = (
    # what the tool whose result a message is read or wrote; `sha256` is of all the file's bytes then
    """
    CREATE TABLE file (
        number  INTEGER PRIMARY KEY,
        message INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
        path    ANY NOT NULL,
        action  TEXT NOT NULL,
        sha256  TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX file_by_message ON file (message)",
)

_FOURTH = (
    # how a model counts is measured at every reply now, and no longer a factor of its refusals
    "ALTER TABLE learned DROP COLUMN factor",
    """
    CREATE TABLE measured (
        model   ANY NOT NULL,
        address ANY NOT NULL,
        value   ANY NOT NULL,
        PRIMARY KEY (model, address)
    ) STRICT
    """,
)

_FIFTH = (
    # rows are only added; the newest whose `through` is on the branch of the head is the one that counts
    """
    CREATE TABLE summary (
        number        INTEGER PRIMARY KEY AUTOINCREMENT,
        session       INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
        generation    INTEGER NOT NULL,
        made_from     INTEGER NOT NULL,
        through       INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
        text          ANY NOT NULL,
        digest        TEXT NOT NULL,
        made_by       ANY NOT NULL,
        tokens_before INTEGER NOT NULL,
        tokens_after  INTEGER NOT NULL,
        created_at    REAL NOT NULL,
        UNIQUE (session, generation)
    ) STRICT
    """,
    "CREATE INDEX summary_by_through ON summary (through)",
    # nothing was ever written to these
    "ALTER TABLE session DROP COLUMN conversation_summary",
    "ALTER TABLE session DROP COLUMN summary_through_id",
    # whether the user has dismissed the line that says that a session is summarized
    "ALTER TABLE session ADD COLUMN summary_noted INTEGER NOT NULL DEFAULT 0",
    # what a request was for: "answer" or "summary"
    "ALTER TABLE request ADD COLUMN purpose TEXT NOT NULL DEFAULT 'answer'",
)

_SIXTH = (
    # messages that the user keeps out of the prompt, as `pins` are those that stay in it
    "ALTER TABLE session ADD COLUMN excluded TEXT NOT NULL DEFAULT '[]'",
)

_SEVENTH = (
    # the address of the model's server: empty for the provider's own, NULL for a session from before this
    "ALTER TABLE session ADD COLUMN api_base ANY",
)

_EIGHTH = (
    # what files held before and after a tool changed them: `message` is the reply whose call it was; a hash
    # of NULL is no file; a mode of NULL is a new file's under the user's umask
    """
    CREATE TABLE file_change (
        number      INTEGER PRIMARY KEY AUTOINCREMENT,
        message     INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
        path        ANY NOT NULL,
        before      TEXT,
        before_mode INTEGER,
        after       TEXT,
        after_mode  INTEGER,
        links       INTEGER NOT NULL,
        folders     ANY NOT NULL,
        first       INTEGER NOT NULL  -- the number of the first change of the same call
    ) STRICT
    """,
    "CREATE INDEX file_change_by_message ON file_change (message)",
    # the bytes themselves, once for every content, compressed
    "CREATE TABLE file_content (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL, kept_at REAL NOT NULL) STRICT",
)

_NINTH = (
    # pictures, once for each content, and the messages that have them
    "CREATE TABLE picture (sha256 TEXT PRIMARY KEY, media_type TEXT NOT NULL, data BLOB NOT NULL) STRICT",
    """
    CREATE TABLE picture_of (
        message INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
        sha256  TEXT NOT NULL,
        PRIMARY KEY (message, sha256)
    ) STRICT
    """,
)

_TENTH = (
    # the session's own reasoning effort: empty for the model's default, NULL for that of the settings
    "ALTER TABLE session ADD COLUMN effort TEXT",
)

_ELEVENTH = (
    # why the provider's cache did not serve a request, empty where it did, and the tokens read anew
    "ALTER TABLE request ADD COLUMN cache_miss TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE request ADD COLUMN missed_tokens INTEGER NOT NULL DEFAULT 0",
)

_TWELFTH = (
    # what a summary does not stand for of the messages before its last: places as JSON, empty for nothing
    "ALTER TABLE summary ADD COLUMN skipped TEXT NOT NULL DEFAULT ''",
)

_THIRTEENTH = (
    # the session of a task: the reply that called for it, and which of its calls that was, from 0
    "ALTER TABLE session ADD COLUMN asked_by INTEGER REFERENCES message (number)",
    "ALTER TABLE session ADD COLUMN asked_call INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX session_by_task ON session (asked_by)",
)

_FOURTEENTH = (
    # when a branch last knew a file is looked up by its path, however many were read since
    "CREATE INDEX file_by_path ON file (path)",
)

_FIFTEENTH = (
    # the MCP servers of a session by name, and whether each is on, as JSON
    "ALTER TABLE session ADD COLUMN servers TEXT NOT NULL DEFAULT '{}'",
)

_SIXTEENTH = (
    # what the user made of notes of the model, by the message's id and the note's number
    "ALTER TABLE session ADD COLUMN notes TEXT NOT NULL DEFAULT '{}'",
)

_SEVENTEENTH = (
    # ids that no other store gives: UUIDv7, made for what is there from when it was made. A session is also
    # found by the end of its id, and keeps the name that people know it by
    "ALTER TABLE session ADD COLUMN short TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE session ADD COLUMN reversed TEXT NOT NULL DEFAULT ''",
    "UPDATE session SET short = id, id = id_text(made_id(created_at, number))",
    "UPDATE session SET reversed = reversed_text(id)",
    "CREATE INDEX session_by_short ON session (short)",
    "CREATE INDEX session_by_end ON session (reversed)",
    """
    UPDATE session SET parent = coalesce(
        (SELECT origin.id FROM session AS origin WHERE origin.short = session.parent), ''
    ) WHERE parent != ''
    """,
    "ALTER TABLE message ADD COLUMN id BLOB NOT NULL DEFAULT x''",
    "UPDATE message SET id = made_id(created_at, number)",
    "CREATE UNIQUE INDEX message_by_id ON message (id)",
    *(
        f"""
        UPDATE session SET {column} = (
            SELECT json_group_array(id_text(message.id)) FROM json_each(session.{column}) AS kept
            CROSS JOIN message ON message.number = CAST(substr(kept.value, 2) AS INTEGER)
        ) WHERE {column} != '[]'
        """  # noqa: S608 - our own names
        for column in ("pins", "excluded")
    ),
    # the message's id, and behind a slash the number of the note
    """
    UPDATE session SET notes = (
        SELECT json_group_object(id_text(message.id) || substr(kept.key, instr(kept.key, '/')), kept.value)
        FROM json_each(session.notes) AS kept
        CROSS JOIN message ON message.number = CAST(substr(kept.key, 2, instr(kept.key, '/') - 2) AS INTEGER)
    ) WHERE notes != '{}'
    """,
    # its head was a text of the message's old id
    """
    CREATE TABLE new_request (
        number              INTEGER PRIMARY KEY AUTOINCREMENT,
        id                  BLOB NOT NULL UNIQUE,
        short               TEXT NOT NULL,
        session             INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
        head                INTEGER,
        model               ANY NOT NULL,
        plan                ANY NOT NULL,
        settings_digest     TEXT NOT NULL,
        pipeline_version    INTEGER NOT NULL,
        wire_hash           TEXT NOT NULL,
        estimated           INTEGER NOT NULL,
        bound               INTEGER NOT NULL,
        input_tokens        INTEGER NOT NULL,
        output_tokens       INTEGER NOT NULL,
        cached_read_tokens  INTEGER NOT NULL,
        cached_write_tokens INTEGER NOT NULL,
        reasoning_tokens    INTEGER NOT NULL,
        cost                REAL,
        seconds             REAL NOT NULL,
        created_at          REAL NOT NULL,
        error               ANY NOT NULL,
        totals              ANY NOT NULL,
        purpose             TEXT NOT NULL DEFAULT 'answer',
        cache_miss          TEXT NOT NULL DEFAULT '',
        missed_tokens       INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    """
    INSERT INTO new_request SELECT
        number, made_id(created_at, number), 'q' || number, session,
        CASE WHEN head = '' THEN NULL ELSE CAST(substr(head, 2) AS INTEGER) END,
        model, plan, settings_digest, pipeline_version, wire_hash, estimated, bound, input_tokens,
        output_tokens, cached_read_tokens, cached_write_tokens, reasoning_tokens, cost, seconds, created_at,
        error, totals, purpose, cache_miss, missed_tokens
    FROM request ORDER BY number
    """,
    "DROP TABLE request",
    "ALTER TABLE new_request RENAME TO request",
    "CREATE INDEX request_by_session ON request (session)",
    "CREATE INDEX request_by_short ON request (short)",
    "CREATE INDEX request_by_time ON request (created_at, cost)",
)

_EIGHTEENTH = (
    # an id stands behind its message's text: whoever wants the one need not read the other
    "CREATE INDEX message_ids ON message (number, id, depth)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _FIRST,
    _SECOND,
    _THIRD,
    _FOURTH,
    _FIFTH,
    _SIXTH,
    _SEVENTH,
    _EIGHTH,
    _NINTH,
    _TENTH,
    _ELEVENTH,
    _TWELFTH,
    _THIRTEENTH,
    _FOURTEENTH,
    _FIFTEENTH,
    _SIXTEENTH,
    _SEVENTEENTH,
    _EIGHTEENTH,
)
"""Step n brings a database of version n to version n + 1; steps are added, never changed."""

VERSION = len(MIGRATIONS)


def add_functions(connection: sqlite3.Connection) -> None:
    """Let a connection call the functions that steps use."""
    connection.create_function("made_id", 2, lambda at, number: packed(id_of_time(at, number)))
    connection.create_function("id_text", 1, unpacked)
    connection.create_function("reversed_text", 1, lambda text: text[::-1])
