"""The tables in PostgreSQL, and the steps that bring older ones up to this version."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from psycopg import Connection, errors, sql

from rolling_chat.sessions.records import StoreError

SCHEMA = "rolling_chat"
STEPS: tuple[str, ...] = ("tables.sql",)
"""Step n brings tables of version n to version n + 1; steps are added, never changed."""

VERSION = len(STEPS)

# made anew by every step
_DEFINITIONS = ("functions.sql", "copies.sql", "policies.sql")
_OWNER = "rolling_chat_owner"
_LOCK = 0x52436874  # "RCht"
# IF NOT EXISTS would ask for the right to make schemas also where it is there
_SCHEMA_MADE = """
    DO $$ BEGIN
        IF to_regnamespace('rolling_chat') IS NULL THEN CREATE SCHEMA rolling_chat; END IF;
    END $$
"""
_DEFINER_SAFE = """
    DO $$ DECLARE one record; BEGIN
        FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
            WHERE pronamespace = 'rolling_chat'::regnamespace AND prosecdef
        LOOP
            EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, rolling_chat, pg_temp', one.name);
        END LOOP;
    END $$
"""


def use_schema(connection: Connection[Any]) -> None:
    """Make names in statements those of the store."""
    connection.execute("SET search_path TO rolling_chat, pg_temp")


def migrate(connection: Connection[Any], name: str) -> None:
    """Bring the tables up to this version. Raises StoreError, and changes nothing, for a newer one's."""
    version = _version(connection)
    if version is None or version < VERSION:
        _step_up(connection, name)
    elif version > VERSION:
        raise _too_new(name, version)


def script(name: str) -> str:
    """Return one of the SQL files of this package."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _version(connection: Connection[Any]) -> int | None:
    try:
        # in one go: with a slow connection each statement counts
        cursor = connection.execute("SET search_path TO rolling_chat, pg_temp; SELECT number FROM version")
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        use_schema(connection)
        return None
    cursor.nextset()
    row = cursor.fetchone()
    return int(row[0]) if row else None


def _step_up(connection: Connection[Any], name: str) -> None:
    try:
        with connection.transaction():
            # others wait, and find it done
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            connection.execute(_SCHEMA_MADE)
            _become_owner(connection)
            connection.execute("CREATE TABLE IF NOT EXISTS version (number integer NOT NULL)")
            row = connection.execute("SELECT number FROM version").fetchone()
            version = row[0] if row else 0
            if version > VERSION:
                raise _too_new(name, version)
            if version == VERSION:
                return
            for step in (*STEPS[version:], *_DEFINITIONS):
                connection.execute(script(step))  # our own files
            connection.execute(_DEFINER_SAFE)
            connection.execute("DELETE FROM version")
            connection.execute("INSERT INTO version VALUES (%s)", (VERSION,))
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{name} has no tables of this version, and this login may not make them; "
            "have its owner open it first with this version of rolling-chat"
        ) from error


def _become_owner(connection: Connection[Any]) -> None:
    """Have what is made belong to the role of owners, if the schema does and the login is a member of it."""
    row = connection.execute(
        "SELECT pg_has_role(session_user, pg_roles.oid, 'MEMBER') FROM pg_roles JOIN pg_namespace"
        " ON nspowner = pg_roles.oid WHERE rolname = %s AND nspname = %s",
        (_OWNER, SCHEMA),
    ).fetchone()
    if row and row[0]:
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(_OWNER)))


def _too_new(name: str, version: int) -> StoreError:
    return StoreError(
        f"{name} was written by a newer version of rolling-chat "
        f"(format {version}, this one knows {VERSION}); update the program"
    )
