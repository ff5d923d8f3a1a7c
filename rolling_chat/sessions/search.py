"""Finding messages by the words in them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from rolling_chat.sessions.records import SearchHit
from rolling_chat.sessions.rows import message_id
from rolling_chat.text import one_line

_MOST_WORDS = 32
_MOST_LETTERS = 64
_SNIPPET_CHARACTERS = 160
# scripts written without spaces begin here (CJK radicals): the index takes a whole run for a word
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)

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
    connection: sqlite3.Connection, words: str, session: tuple[int, str] | None, limit: int
) -> list[SearchHit]:
    """The messages that hold all of `words`, else those that hold any, best first.

    Any text will do for `words`; nothing in it is an operator. `session` is the row and the id of
    the one session to look in, None for all.
    """
    found = [word[:_MOST_LETTERS] for word in re.findall(r"\w+", words)][:_MOST_WORDS]
    if not found or limit < 1:
        return []
    rows: Sequence[sqlite3.Row] = []
    if not any(_UNSPACED.search(word) for word in found):
        quoted = [f'"{word}"' for word in found]
        rows = _indexed(connection, " ".join(quoted), session, limit)
        rows = rows or _indexed(connection, " OR ".join(quoted), session, limit)
    rows = rows or _scanned(connection, found, session, limit)
    return [
        SearchHit(
            session_id=session[1] if session else row["session_id"],
            message_id=message_id(row["number"]),
            snippet=_snippet(row["snippet"], found),
        )
        for row in rows
    ]


def _indexed(
    connection: sqlite3.Connection, match: str, session: tuple[int, str] | None, limit: int
) -> Sequence[sqlite3.Row]:
    # a blob: cut between two halves of a character, a text could not be read at all
    statement = f"""
        SELECT message.number, session.id AS session_id,
               CAST(snippet(message_text, 0, '[', ']', '…', 16) AS BLOB) AS snippet
        FROM message_text
        JOIN message ON message.number = message_text.rowid
        JOIN session ON session.number = message.session
        WHERE message_text MATCH :match {_within(session)}
        ORDER BY rank LIMIT :limit
    """  # noqa: S608 - our own words
    return connection.execute(statement, _values(session, limit) | {"match": match}).fetchall()


def _scanned(
    connection: sqlite3.Connection, words: Iterable[str], session: tuple[int, str] | None, limit: int
) -> Sequence[sqlite3.Row]:
    patterns = {f"word{index}": f"%{_escaped(word)}%" for index, word in enumerate(words)}
    holds_all = " AND ".join(f"message_plain.content LIKE :{name} ESCAPE '\\'" for name in patterns)
    statement = f"""
        SELECT message.number, session.id AS session_id, CAST(message_plain.content AS BLOB) AS snippet
        FROM message_plain
        JOIN message USING (number)
        JOIN session ON session.number = message.session
        WHERE {holds_all} {_within(session)}
        ORDER BY message.number DESC LIMIT :limit
    """  # noqa: S608 - our own words
    return connection.execute(statement, _values(session, limit) | patterns).fetchall()


def _within(session: tuple[int, str] | None) -> str:
    return f"AND message.number IN ({IN_SESSION})" if session else ""


def _values(session: tuple[int, str] | None, limit: int) -> dict[str, int | str]:
    values: dict[str, int | str] = {"limit": limit}
    return values | {"session": session[0]} if session else values


def _snippet(found: bytes | None, words: Iterable[str]) -> str:
    text = (found or b"").decode("utf-8", "replace")
    if len(text) > _SNIPPET_CHARACTERS:
        places = [place for place in (text.lower().find(word.lower()) for word in words) if place > 0]
        start = max(0, min(places, default=0) - _SNIPPET_CHARACTERS // 4)
        text = ("…" if start else "") + text[start:]
    return one_line(text, _SNIPPET_CHARACTERS)


def _escaped(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
