"""A database as a team has it: logins by the script of the roles, and the sessions of many others."""

from __future__ import annotations

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.migrations import script
from tests.support.postgres import ADMIN, Server, new_database

KEEPER = "keeper"
"""A login that may act as the owner of the tables."""

# One part of what others have in the store, between what is measured in it: a page of an index that would be
# another one at 10,000 users is another one here, too.
_OTHERS = """
    SET search_path TO rolling_chat;
    WITH made AS MATERIALIZED (
        SELECT n, gen_random_uuid()::text AS id, 1.7e9 + PART * 1000 + n AS at
        FROM generate_series(1, SESSIONS) AS n
    ), added AS (
        INSERT INTO session (
            owner, id, short, title, title_given, title_says, folder, model, rolling, parent, is_spoken_in,
            created_at, updated_at
        )
        SELECT format('user_%s_%s', lpad((PART * 7919 % 1000)::text, 3, '0'), n), id, right(id, 8), 'title',
            true, true, '/folder' || n % 7, 'm', false, '', true, at, at
        FROM made
        RETURNING number, owner, created_at
    )
    INSERT INTO message (id, owner, session, run, depth, turn, role, content, ending, created_at, words)
    SELECT gen_random_uuid()::text, owner, added.number, -added.number, n, n, 'user',
        repeat('some words ', 40), 'complete', created_at,
        to_tsvector('simple', format('w%s v%s u%s', n * added.number % 5000, n, added.number))
    FROM added, generate_series(1, 5) AS n;
    ANALYZE session; ANALYZE message;
"""

# several tests may make the same one at the same time
_LOGIN = """
    DO $$ BEGIN CREATE ROLE {who} LOGIN IN ROLE {role};
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
"""


def new_team(server: Server, users: int) -> str:
    """Make a database with logins for so many users; return its name."""
    name = new_database(server, empty=True)
    server.sql(script("roles.sql"), name)
    logins = {KEEPER: "rolling_chat_owner"} | {
        login(number): "rolling_chat_member" for number in range(users)
    }
    server.sql("".join(_LOGIN.format(who=who, role=role) for who, role in logins.items()), name)
    open_store(server.url(name, ADMIN)).close()
    return name


def login(number: int) -> str:
    """Return the name of a user's login."""
    return f"user_{number * 7919 % 1000:03}"


def add_others(server: Server, database: str, part: int, sessions: int) -> None:
    """Add sessions of logins that are not here."""
    if sessions:
        filled = _OTHERS.replace("PART", str(part)).replace("SESSIONS", str(sessions))
        server.sql(filled, database)
