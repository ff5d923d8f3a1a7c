-- The tables of the session store, version 1. Everything is in one schema; PostgreSQL 15 or newer.
--
-- A branch is read by runs: a run is a chain of messages without a fork in it, named by its first message's
-- number, and `depth` counts from the root of the tree. So a branch is a few ranges of the index on
-- (run, depth), however long it is, and whether a message is on it is a comparison.
--
-- `owner` is the login that a row belongs to. It is in every table, so that a policy compares it with
-- the present login and looks nothing up.
--
-- A text holds neither NUL nor halves of characters: the program writes those as U+001A and four digits.

CREATE TABLE session (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text COLLATE "C" NOT NULL UNIQUE CHECK (id ~ '^[0-9a-f-]{36}$'),
    short         text COLLATE "C" NOT NULL CHECK (short ~ '^[0-9a-z-]{1,40}$'),  -- by what people know it
    reversed      text COLLATE "C" GENERATED ALWAYS AS (reverse(id)) STORED,  -- to be found by its end
    owner         name COLLATE "C" NOT NULL DEFAULT session_user,
    title         text NOT NULL,
    title_given   boolean NOT NULL,
    title_says    boolean NOT NULL,  -- whether the title is more than a greeting
    folder        text NOT NULL,
    folder_key    uuid GENERATED ALWAYS AS (md5(folder)::uuid) STORED,  -- a path can be longer than an index takes
    model         text NOT NULL,
    api_base      text,
    api_base_by   name COLLATE "C",  -- who chose it: nobody else's key is sent there
    effort        text,
    rolling       boolean NOT NULL,
    parent        text COLLATE "C" NOT NULL,
    head          bigint,
    forked_at     bigint,
    asked_by      bigint,
    asked_call    integer NOT NULL DEFAULT 0,
    summary_noted boolean NOT NULL DEFAULT false,
    pins          text NOT NULL DEFAULT '[]',
    excluded      text NOT NULL DEFAULT '[]',
    notes         text NOT NULL DEFAULT '{}',
    plan          text NOT NULL DEFAULT 'null',
    servers       text NOT NULL DEFAULT '{}',
    is_spoken_in  boolean NOT NULL DEFAULT false,  -- it had a message, on any branch
    created_at    double precision NOT NULL,
    updated_at    double precision NOT NULL
);
CREATE INDEX session_by_time ON session (owner, updated_at DESC, number DESC);
CREATE INDEX session_by_folder ON session (folder_key, updated_at DESC, number DESC);
CREATE INDEX session_by_short ON session (short);
CREATE INDEX session_by_end ON session (reversed);
CREATE INDEX session_by_head ON session (head);
CREATE INDEX session_by_fork ON session (forked_at);
CREATE INDEX session_by_task ON session (asked_by);

CREATE TABLE message (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE,
    owner        name COLLATE "C" NOT NULL,
    session      bigint NOT NULL REFERENCES session (number),
    parent       bigint REFERENCES message (number),
    run          bigint NOT NULL,
    depth        integer NOT NULL,
    turn         integer NOT NULL,  -- messages of the user from the root on
    role         text NOT NULL,
    content      text NOT NULL,
    parts        text,
    tool_calls   text,
    tool_call_id text,
    name         text,
    extras       text,
    provider     text,
    model        text,
    ending       text NOT NULL,
    created_at   double precision NOT NULL,
    counts       text,
    words        tsvector,
    UNIQUE (run, depth)
);
CREATE INDEX message_by_session ON message (session);
CREATE INDEX message_by_parent ON message (parent);
CREATE INDEX message_by_words ON message USING gin (words);

ALTER TABLE session
    ADD FOREIGN KEY (head) REFERENCES message (number),
    ADD FOREIGN KEY (forked_at) REFERENCES message (number),
    ADD FOREIGN KEY (asked_by) REFERENCES message (number);

-- who may use a session besides its owner
CREATE TABLE share (
    session   bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    owner     name COLLATE "C" NOT NULL DEFAULT session_user,
    member    name COLLATE "C" NOT NULL,
    may_write boolean NOT NULL,
    PRIMARY KEY (session, member)
);
CREATE INDEX share_by_member ON share (member);

-- messages of another session that a shared fork stands on: whom the fork is shared with reads them, too
CREATE TABLE lent (
    session bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    owner   name COLLATE "C" NOT NULL DEFAULT session_user,
    message bigint NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    PRIMARY KEY (session, message)
);
CREATE INDEX lent_by_message ON lent (message);

-- an open store of a process; it lives while it says so
CREATE TABLE writer (
    store   text COLLATE "C" PRIMARY KEY,
    owner   name COLLATE "C" NOT NULL DEFAULT session_user,
    pid     bigint NOT NULL,
    host    text NOT NULL,
    machine text NOT NULL,
    started text NOT NULL,
    beat    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX writer_by_beat ON writer (beat);

CREATE TABLE claim (
    session bigint PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    owner   name COLLATE "C" NOT NULL,
    store   text COLLATE "C" NOT NULL,
    since   double precision NOT NULL
);
CREATE INDEX claim_by_store ON claim (store);

-- who wants to be told of what is written to a session
CREATE TABLE follower (
    session bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    owner   name COLLATE "C" NOT NULL DEFAULT session_user,
    store   text COLLATE "C" NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (session, store)
);
CREATE INDEX follower_by_store ON follower (store);

-- a reply that is still being written, and its text piece by piece
CREATE TABLE growing (
    message bigint PRIMARY KEY REFERENCES message (number) ON DELETE CASCADE,
    owner   name COLLATE "C" NOT NULL,
    session bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    store   text COLLATE "C" NOT NULL
);
CREATE INDEX growing_by_session ON growing (session);
CREATE INDEX growing_by_store ON growing (store);

CREATE TABLE chunk (
    message   bigint NOT NULL REFERENCES growing (message) ON DELETE CASCADE,
    owner     name COLLATE "C" NOT NULL,
    session   bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    place     integer NOT NULL,
    text      text NOT NULL,
    reasoning text NOT NULL,
    PRIMARY KEY (message, place)
);
CREATE INDEX chunk_by_session ON chunk (session);

CREATE TABLE request (
    number              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                  text COLLATE "C" NOT NULL UNIQUE,
    short               text COLLATE "C" NOT NULL,  -- by what people know it
    owner               name COLLATE "C" NOT NULL,
    session             bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    head                text COLLATE "C" NOT NULL,
    model               text NOT NULL,
    plan                text NOT NULL,
    settings_digest     text COLLATE "C" NOT NULL,
    pipeline_version    bigint NOT NULL,
    wire_hash           text NOT NULL,
    estimated           bigint NOT NULL,
    bound               bigint NOT NULL,
    input_tokens        bigint NOT NULL,
    output_tokens       bigint NOT NULL,
    cached_read_tokens  bigint NOT NULL,
    cached_write_tokens bigint NOT NULL,
    reasoning_tokens    bigint NOT NULL,
    cost                double precision,
    seconds             double precision NOT NULL,
    created_at          double precision NOT NULL,
    error               text NOT NULL,
    totals              text NOT NULL,
    purpose             text NOT NULL,
    cache_miss          text NOT NULL DEFAULT '',
    missed_tokens       bigint NOT NULL DEFAULT 0
);
CREATE INDEX request_by_session ON request (session, number);
CREATE INDEX request_by_short ON request (short);
CREATE INDEX request_by_time ON request (owner, created_at);
CREATE INDEX request_by_digest ON request (owner, settings_digest);

-- what requests were made from, besides messages
CREATE TABLE basis (
    owner  name COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    value  text NOT NULL,
    PRIMARY KEY (owner, digest)
);

CREATE TABLE summary (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text COLLATE "C" NOT NULL UNIQUE,
    owner         name COLLATE "C" NOT NULL,
    session       bigint NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    generation    integer NOT NULL,
    made_from     bigint NOT NULL,
    through       bigint NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    text          text NOT NULL,
    digest        text NOT NULL,
    made_by       text NOT NULL,
    tokens_before bigint NOT NULL,
    tokens_after  bigint NOT NULL,
    created_at    double precision NOT NULL,
    skipped       text NOT NULL,
    UNIQUE (session, generation)
);
CREATE INDEX summary_by_through ON summary (through);

CREATE TABLE file (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message  bigint NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    owner    name COLLATE "C" NOT NULL,
    session  bigint NOT NULL,
    path     text NOT NULL,
    path_key uuid GENERATED ALWAYS AS (md5(path)::uuid) STORED,
    action   text NOT NULL,
    sha256   text NOT NULL
);
CREATE INDEX file_by_message ON file (message);
CREATE INDEX file_by_path ON file (path_key, owner);

CREATE TABLE file_change (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch       text COLLATE "C" NOT NULL,  -- one call of `keep`
    place       integer NOT NULL,
    message     bigint NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    owner       name COLLATE "C" NOT NULL,
    session     bigint NOT NULL,
    path        text NOT NULL,
    before      text COLLATE "C",
    before_mode integer,
    after       text COLLATE "C",
    after_mode  integer,
    links       integer NOT NULL,
    folders     text NOT NULL,
    first       bigint,
    UNIQUE (batch, place)
);
CREATE INDEX file_change_by_message ON file_change (message, number);
CREATE INDEX file_change_by_owner ON file_change (owner, number);
CREATE INDEX file_change_by_before ON file_change (owner, before);
CREATE INDEX file_change_by_after ON file_change (owner, after);

CREATE TABLE file_content (
    owner   name COLLATE "C" NOT NULL,
    sha256  text COLLATE "C" NOT NULL,
    data    bytea NOT NULL,
    kept_at double precision NOT NULL,
    number  bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (owner, sha256)
);
ALTER TABLE file_content ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed before it comes

CREATE TABLE picture (
    owner      name COLLATE "C" NOT NULL,
    sha256     text COLLATE "C" NOT NULL,
    media_type text NOT NULL,
    data       bytea NOT NULL CHECK (encode(sha256(data), 'hex') = sha256),
    PRIMARY KEY (owner, sha256)
);
ALTER TABLE picture ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE picture_of (
    message bigint NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    owner   name COLLATE "C" NOT NULL,
    session bigint NOT NULL,
    sha256  text COLLATE "C" NOT NULL,
    PRIMARY KEY (message, sha256)
);
CREATE INDEX picture_of_by_picture ON picture_of (owner, sha256);

-- what refusals and replies taught about models
CREATE TABLE learned (
    owner        name COLLATE "C" NOT NULL DEFAULT session_user,
    model        text NOT NULL,
    address      text NOT NULL,
    limit_tokens bigint NOT NULL,
    learned_at   double precision NOT NULL,
    PRIMARY KEY (owner, model, address)
);
CREATE TABLE measured (
    owner   name COLLATE "C" NOT NULL DEFAULT session_user,
    model   text NOT NULL,
    address text NOT NULL,
    value   text NOT NULL,
    PRIMARY KEY (owner, model, address)
);
