"""Finding messages by the words in them."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from rolling_chat.sessions.excerpts import excerpt
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.records import SearchHit
from rolling_chat.sessions.search_query import (
    MAX_RANKED,
    Term,
    all_words,
    content_forms,
    is_unspaced,
    marked,
    read_query,
)
from rolling_chat.sessions.sqlite import text_index
from rolling_chat.sessions.sqlite.ancestry import places
from rolling_chat.sessions.sqlite.rows import unpack

_log = logging.getLogger("rolling_chat.sessions")

# the rows of the messages of `:session`: those that it made and those that it shares with the session it
# forked
IN_SESSION = """
    WITH RECURSIVE branch (number) AS (
        SELECT head FROM session WHERE number = :session AND head IS NOT NULL
        UNION ALL
        SELECT message.parent FROM branch JOIN message USING (number) WHERE message.parent IS NOT NULL
    )
    SELECT number FROM branch UNION SELECT number FROM message WHERE session = :session
"""


def search(
    connection: sqlite3.Connection,
    words: str,
    session: int | None,
    limit: int,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[SearchHit]:
    """Search the full-text index: for all of `words`, then for words that begin so, else for any of them.

    Best first, the newer before the older. `session` is the row of the one session to look in, None for
    all. A text index that is damaged is done without. Once `is_stopped` the hits so far are all.
    """
    terms = read_query(words)
    if not terms or limit < 1:
        return []
    tiers: Sequence[Sequence[sqlite3.Row]] = []
    if not is_unspaced(terms) and text_index.is_kept(connection):
        tiers = _by_index(connection, terms, session, max(limit, MAX_RANKED))
    rows = _ranked(connection, tiers, words, limit) or _scanned(connection, all_words(terms), session, limit)
    turns = _Turns(connection)
    marks = marked(terms)
    hits = []
    for row in rows:
        if is_stopped():
            break
        hits.append(
            SearchHit(
                session_id=row["session_id"],
                message_id=unpacked(row["id"]),
                snippet=excerpt(_content(connection, row["number"]), marks),
                title=unpack(row["title"]),
                folder=unpack(row["folder"]),
                role=row["role"],
                turn=turns.of(row["number"], row["head"]),
                on_branch=turns.is_on_branch(row["number"], row["head"]),
                created_at=row["created_at"],
                session_short=row["short"],
            )
        )
    return hits


def _ranked(
    connection: sqlite3.Connection, tiers: Iterable[Sequence[sqlite3.Row]], words: str, limit: int
) -> list[sqlite3.Row]:
    """Order the rows of each tier as recall does, without those that an earlier one has."""
    # its patterns take as long to compile as opening the store
    from rolling_chat.sessions.search_order import in_order  # noqa: PLC0415

    ranked: dict[int, sqlite3.Row] = {}
    lookup = _Lookup(connection)
    for tier in tiers:
        if len(ranked) < limit:
            rows = {row["number"]: row for row in tier if row["number"] not in ranked}
            roles = {number: row["role"] for number, row in rows.items()}
            ranked |= {number: rows[number] for number in in_order(roles, words, lookup)}
    return list(ranked.values())[:limit]


class _Lookup:
    """What the order of the hits needs of the store (`search_order.Lookup`)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def text(self, number: int) -> str:
        return _content(self._connection, number)

    def holders(self, stem: str, most: int) -> int:
        statement = "SELECT count(*) FROM (SELECT 1 FROM message_text WHERE message_text MATCH ? LIMIT ?)"
        (count,) = self._connection.execute(statement, (f'"{stem}"*', most)).fetchone()
        return int(count)

    def above(self, number: int) -> int | None:
        row = self._connection.execute("SELECT parent FROM message WHERE number = ?", (number,)).fetchone()
        return None if row is None else row[0]


def _content(connection: sqlite3.Connection, number: int) -> str:
    # a blob: a lone half of a character could not be read as text at all
    statement = "SELECT CAST(content AS BLOB) FROM message_plain WHERE number = ?"
    (content,) = connection.execute(statement, (number,)).fetchone()
    return (content or b"").decode("utf-8", "replace")


def _by_index(
    connection: sqlite3.Connection, terms: Sequence[Term], session: int | None, limit: int
) -> Sequence[Sequence[sqlite3.Row]]:
    """Return the rows with all words, then those with words that begin so, else those with any of them."""
    exact = [part for term in terms for part in _match(term)]
    begun = [part for term in terms for part in _match(term, beginnings=True)]
    try:
        tiers = [_indexed(connection, " ".join(exact), session, limit)]
        if len(tiers[0]) < limit and begun != exact:
            tiers.append(_indexed(connection, " ".join(begun), session, limit))
        return tiers if any(tiers) else [_indexed(connection, _any_of(terms), session, limit)]
    except sqlite3.DatabaseError as error:
        if not text_index.is_damage(error):
            raise
        _log.error("the text index is damaged; searching without it: %s", error)
        return []


def _match(term: Term, *, beginnings: bool = False) -> list[str]:
    """Return a term in the index's language; `beginnings` also finds words that begin so."""
    if term.is_phrase:
        return [f'"{" ".join(term.words)}"']
    star = "*" if term.is_beginning or (beginnings and term.may_begin()) else ""
    return [f'"{word}"{star}' for word in term.words]


def _any_of(terms: Sequence[Term]) -> str:
    """Return what finds any of the phrases and words, words in any form; not those that say nothing."""
    phrases = [part for term in terms if term.is_phrase for part in _match(term)]
    forms = [f'"{stem}"*' for stem in content_forms(terms)]
    return " OR ".join(phrases + forms or [part for term in terms for part in _match(term, beginnings=True)])


class _Turns:
    """The turns that messages belong to; every session's branch is walked once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._walked: dict[int | None, dict[int, int]] = {}

    def is_on_branch(self, number: int, head: int | None) -> bool:
        return number in self._walk(head)

    def of(self, number: int, head: int | None) -> int:
        """Return the turn of message `number` of a session whose head is `head`."""
        there = self._walk(head)
        return there[number] if number in there else self._walk(number)[number]

    def _walk(self, head: int | None) -> dict[int, int]:
        if head not in self._walked:
            turn, turns = 0, {}
            for number, role in reversed(places(self._connection, head)):
                turn += role == "user"
                turns[number] = turn
            self._walked[head] = turns
        return self._walked[head]


def _indexed(
    connection: sqlite3.Connection, match: str, session: int | None, limit: int
) -> Sequence[sqlite3.Row]:
    statement = f"""
        SELECT message.number, message.id, message.role, message.created_at,
               session.id AS session_id, session.short, session.title, session.folder, session.head
        FROM message_text
        JOIN message ON message.number = message_text.rowid
        JOIN session ON session.number = coalesce(:session, message.session)
        WHERE message_text MATCH :match {_within(session)}
        ORDER BY rank, message.number DESC LIMIT :limit
    """  # noqa: S608 - our own words
    return connection.execute(statement, _values(session, limit) | {"match": match}).fetchall()


def _scanned(
    connection: sqlite3.Connection, words: Iterable[str], session: int | None, limit: int
) -> Sequence[sqlite3.Row]:
    patterns = {f"word{index}": f"%{_escaped(word)}%" for index, word in enumerate(words)}
    holds_all = " AND ".join(f"message_plain.content LIKE :{name} ESCAPE '\\'" for name in patterns)
    statement = f"""
        SELECT message.number, message.id, message.role, message.created_at,
               session.id AS session_id, session.short, session.title, session.folder, session.head
        FROM message_plain
        JOIN message USING (number)
        JOIN session ON session.number = coalesce(:session, message.session)
        WHERE {holds_all} {_within(session)}
        ORDER BY message.number DESC LIMIT :limit
    """  # noqa: S608 - our own words
    return connection.execute(statement, _values(session, limit) | patterns).fetchall()


def _within(session: int | None) -> str:
    return f"AND message.number IN ({IN_SESSION})" if session is not None else ""


def _values(session: int | None, limit: int) -> dict[str, int | str | None]:
    return {"limit": limit, "session": session}


def _escaped(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
