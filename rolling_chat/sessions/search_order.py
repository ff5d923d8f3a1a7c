"""The order of the messages that a search in the store found: that of recall."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.message_lines import piece_lines
from rolling_chat.messages import Message
from rolling_chat.search_lines import Query
from rolling_chat.search_ranking import Held, Ranking, Statistics
from rolling_chat.search_terms import is_short, split_words

_MAX_READ = 20_000  # characters of a message that are weighed
_MAX_COUNTED = 20_000  # messages that a word is counted in: one that more have says little
_AROUND = 2  # messages before and after one that count for it


def in_order(
    connection: sqlite3.Connection, rows: Sequence[sqlite3.Row], words: str, read: Callable[[int], str]
) -> list[sqlite3.Row]:
    """Return the rows with those first that answer best; those that cannot be weighed stay behind them.

    `read` returns the text of a message by its number.
    """
    query = Query.of(words)
    by_number = {row["number"]: row for row in rows}
    if len(by_number) < 2 or not query.stems:
        return list(by_number.values())
    texts = {number: read(number)[:_MAX_READ] for number in by_number}
    every = {number: _held(query.stems, text) for number, text in texts.items()}
    held = {number: one for number, one in every.items() if one.counts}
    newest = max(by_number)
    statistics = Statistics(
        {stem: max(1, _holders(connection, stem)) for stem in query.stems},
        newest,
        sum(one.words for one in every.values()) / len(every),
    )
    messages = _Found(texts, by_number, _neighbors(connection, by_number), newest)
    ranked = Ranking(candidates=2 * len(held)).rank(query, held, statistics, messages)
    return [by_number[number] for number in dict.fromkeys([one.index for one in ranked] + list(by_number))]


@dataclass(frozen=True, slots=True)
class _Found:
    """The messages that were found, by their numbers (`search_ranking.Messages`)."""

    texts: Mapping[int, str]
    rows: Mapping[int, sqlite3.Row]
    neighbors: Mapping[tuple[int, int], int]
    newest: int

    def lines(self, index: int) -> Sequence[str]:
        return piece_lines(Message("user", self.texts[index]))

    def title(self, index: int) -> tuple[str, float]:  # noqa: ARG002 - what others have by index
        """Return nothing: a call is not searched here."""
        return "", 0.0

    def asked_by(self, index: int) -> int | None:
        return self.neighbors.get((index, -1))

    def is_prose(self, index: int) -> bool:
        return bool(self.rows[index]["role"] != "tool")

    def neighbor(self, index: int, distance: int) -> int | None:
        return self.neighbors.get((index, distance))

    def age(self, index: int) -> float:
        return index / self.newest


def _held(stems: Iterable[str], text: str) -> Held:
    words = split_words(text)
    joined = "\n".join(("", *dict.fromkeys(words)))
    having = {stem: 1 for stem in stems if (f"\n{stem}" if is_short(stem) else stem) in joined}
    return Held(having, len(words))


def _holders(connection: sqlite3.Connection, stem: str) -> int:
    """Count the messages of all sessions with a word that begins so, up to _MAX_COUNTED."""
    statement = "SELECT count(*) FROM (SELECT 1 FROM message_text WHERE message_text MATCH ? LIMIT ?)"
    (count,) = connection.execute(statement, (f'"{stem}"*', _MAX_COUNTED)).fetchone()
    return int(count)


def _neighbors(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[tuple[int, int], int]:
    """Return the messages above the given ones in the tree, and below those, by distance."""
    found: dict[tuple[int, int], int] = {}
    for number in numbers:
        above: int | None = number
        for distance in range(1, _AROUND + 1):
            row = connection.execute("SELECT parent FROM message WHERE number = ?", (above,)).fetchone()
            above = row[0] if row else None
            if above is None:
                break
            found[number, -distance] = above
            found[above, distance] = number
    return found
