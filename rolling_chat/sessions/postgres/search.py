"""Finding messages by their words, in PostgreSQL: its index gives candidates, their order is recall's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rolling_chat.sessions.excerpts import excerpt
from rolling_chat.sessions.postgres.database import Database, Row
from rolling_chat.sessions.postgres.index_words import any_word, every_word, words_of
from rolling_chat.sessions.postgres.rows import pack, unpack
from rolling_chat.sessions.records import SearchHit
from rolling_chat.sessions.search_query import MAX_RANKED, all_words, is_unspaced, marked, read_query
from rolling_chat.text import without_controls

_FETCHED = 20_000  # characters of a candidate: what of it is weighed
_PATIENCE = 60.0  # seconds that a lost connection is waited for: nobody stands still meanwhile

_HIT = """
    message.number, session.id, session.short, message.id, session.title, session.folder,
    message.role, message.turn, is_on_branch(message.number, session.head), message.created_at,
    message.parent, (SELECT above.parent FROM message AS above WHERE above.number = message.parent),
    left(message.content, %(fetched)s), length(message.content)
"""
_FOUND = f"""
    SELECT {_HIT} FROM FOUND WITH ORDINALITY AS found (number, rank)
    JOIN message ON message.number = found.number JOIN session ON session.number = PLACE
    ORDER BY found.rank
"""  # noqa: S608 - our own words
_INDEXED = _FOUND.replace("FOUND", "found_messages(%(query)s::tsquery, %(session)s, %(most)s)")
_SCANNED = _FOUND.replace("FOUND", "scanned_messages(%(patterns)s, %(session)s, %(most)s)")
_CONTENTS = "SELECT number, content FROM message WHERE number = ANY (%(numbers)s)"
_HOLDERS = "SELECT word, messages FROM holders(%(words)s, %(most)s)"


@dataclass(slots=True)
class _Candidate:
    """A message that was found, as far as it was read."""

    hit: SearchHit
    parent: int | None
    grandparent: int | None
    text: str
    is_whole: bool


@dataclass(slots=True)
class _Lookup:
    """What the order of the hits needs of the store (`search_order.Lookup`)."""

    candidates: Mapping[int, _Candidate]
    counts: Mapping[str, int]
    parents: dict[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, one in self.candidates.items():
            self.parents[number] = one.parent
            if one.parent is not None:
                self.parents.setdefault(one.parent, one.grandparent)

    def text(self, number: int) -> str:
        return self.candidates[number].text

    def holders(self, stem: str, most: int) -> int:
        return min(self.counts.get(stem, 0), most)

    def above(self, number: int) -> int | None:
        return self.parents.get(number)


def search(
    database: Database, words: str, session: int | None, limit: int, is_stopped: Callable[[], bool]
) -> list[SearchHit]:
    """Search for all of `words`, then for words that begin so, else for any of them; best first.

    `session` is the row of the one session to look in, None for all.
    """
    terms = read_query(words)
    if not terms or limit < 1:
        return []
    most = max(limit, MAX_RANKED)

    def indexed(query: str) -> dict[int, _Candidate]:
        if not query or is_stopped():
            return {}
        return _candidates(database, _INDEXED, {"query": query, "session": session, "most": most})

    tiers: list[dict[int, _Candidate]] = []
    if not is_unspaced(terms):
        exact, begun = every_word(terms), every_word(terms, beginnings=True)
        tiers = [indexed(exact)]
        if len(tiers[0]) < most and begun != exact:
            tiers.append(indexed(begun))
        if not any(tiers):
            tiers = [indexed(any_word(terms))]
    found = _ranked(database, tiers, words, limit)
    if not found and not is_stopped():
        patterns = [f"%{_escaped(pack(word))}%" for word in all_words(terms)]
        found = _candidates(database, _SCANNED, {"patterns": patterns, "session": session, "most": limit})
    return _with_lines(database, found, marked(terms), is_stopped)


def _ranked(
    database: Database, tiers: Iterable[dict[int, _Candidate]], words: str, limit: int
) -> dict[int, _Candidate]:
    """Order the candidates of each tier as recall does, without those that an earlier one has."""
    # its patterns take as long to compile as opening the store
    from rolling_chat.search_lines import Query  # noqa: PLC0415
    from rolling_chat.sessions.search_order import MAX_COUNTED, in_order  # noqa: PLC0415

    ranked: dict[int, _Candidate] = {}
    counts: dict[str, int] | None = None
    for tier in tiers:
        left = {number: one for number, one in tier.items() if number not in ranked}
        if len(ranked) >= limit or not left:
            continue
        if counts is None:
            counts = _counted(database, Query.of(words).stems, MAX_COUNTED) if len(left) > 1 else {}
        roles = {number: one.hit.role for number, one in left.items()}
        ranked |= {number: left[number] for number in in_order(roles, words, _Lookup(left, counts))}
    return dict(list(ranked.items())[:limit])


def _counted(database: Database, stems: Iterable[str], most: int) -> dict[str, int]:
    """Return in how many messages each stem begins a word."""
    by_word = {stem: word for stem in stems if (word := "".join(words_of(stem)))}
    if not by_word:
        return {}
    rows = database.run(_HOLDERS, {"words": [*set(by_word.values())], "most": most})
    found: dict[str, int] = dict(rows)
    return {stem: found.get(word, 0) for stem, word in by_word.items()}


def _candidates(database: Database, statement: str, values: Mapping[str, object]) -> dict[int, _Candidate]:
    # a fork's hits are its own, also where it shares the message; no policy sees through a COALESCE
    place = "message.session" if values["session"] is None else "%(session)s"
    statement = statement.replace("PLACE", place)
    rows = database.run(statement, {**values, "fetched": _FETCHED}, patience=_PATIENCE)
    return {row[0]: _candidate(row) for row in rows}


def _candidate(row: Row) -> _Candidate:
    (
        _,
        session_id,
        short,
        message_id,
        title,
        folder,
        role,
        turn,
        on_branch,
        created_at,
        parent,
        grandparent,
        text,
        length,
    ) = row
    hit = SearchHit(
        session_id=session_id,
        message_id=message_id,
        snippet="",
        title=unpack(title),
        folder=unpack(folder),
        role=role,
        turn=turn,
        on_branch=on_branch,
        created_at=created_at,
        session_short=short,
    )
    return _Candidate(hit, parent, grandparent, _plain(text), len(text) == length)


def _with_lines(
    database: Database,
    found: Mapping[int, _Candidate],
    marks: Sequence[Sequence[str]],
    is_stopped: Callable[[], bool],
) -> list[SearchHit]:
    """Return the hits with the line around the first match; it may stand far down in a long message."""
    long = [number for number, one in found.items() if not one.is_whole]
    if long and not is_stopped():
        for number, content in database.run(_CONTENTS, {"numbers": long}):
            found[number].text = _plain(content)
    hits = []
    for one in found.values():
        if is_stopped():
            break
        hits.append(replace(one.hit, snippet=excerpt(one.text, marks)))
    return hits


def _plain(content: str) -> str:
    """Return a stored text as it is searched: SQLite's index has no controls where a text was escaped."""
    return without_controls(unpack(content)) if "\x1a" in content else content


def _escaped(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
