"""The order of the messages that a search in the store found: that of recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rolling_chat.message_lines import piece_lines
from rolling_chat.messages import Message
from rolling_chat.search_lines import Query
from rolling_chat.search_ranking import Held, Ranking, Statistics
from rolling_chat.search_terms import is_short, split_words

_MAX_READ = 20_000  # characters of a message that are weighed
MAX_COUNTED = 20_000  # messages that a word is counted in: one that more have says little
_AROUND = 2  # messages before and after one that count for it


class Lookup(Protocol):
    """What the order needs of the store, of messages by their numbers: a later one has a higher number."""

    def text(self, number: int) -> str:
        """Return the text of a message."""

    def holders(self, stem: str, most: int) -> int:
        """Count the messages of all sessions with a word that begins so, up to `most`."""

    def above(self, number: int) -> int | None:
        """Return the message above one in the tree; None for the first."""


def in_order(roles: Mapping[int, str], words: str, lookup: Lookup) -> list[int]:
    """Return the numbers of messages with those first that answer best; `roles` are the found messages'.

    Those that cannot be weighed stay behind the others, in the order of `roles`.
    """
    query = Query.of(words)
    if len(roles) < 2 or not query.stems:
        return list(roles)
    texts = {number: lookup.text(number)[:_MAX_READ] for number in roles}
    every = {number: _held(query.stems, text) for number, text in texts.items()}
    held = {number: one for number, one in every.items() if one.counts}
    newest = max(roles)
    statistics = Statistics(
        {stem: max(1, lookup.holders(stem, MAX_COUNTED)) for stem in query.stems},
        newest,
        sum(one.words for one in every.values()) / len(every),
    )
    messages = _Found(texts, roles, _neighbors(lookup, roles), newest)
    ranked = Ranking(candidates=2 * len(held)).rank(query, held, statistics, messages)
    return list(dict.fromkeys([one.index for one in ranked] + list(roles)))


@dataclass(frozen=True, slots=True)
class _Found:
    """The messages that were found, by their numbers (`search_ranking.Messages`)."""

    texts: Mapping[int, str]
    roles: Mapping[int, str]
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
        return self.roles[index] != "tool"

    def neighbor(self, index: int, distance: int) -> int | None:
        return self.neighbors.get((index, distance))

    def age(self, index: int) -> float:
        return index / self.newest


def _held(stems: Iterable[str], text: str) -> Held:
    words = split_words(text)
    joined = "\n".join(("", *dict.fromkeys(words)))
    having = {stem: 1 for stem in stems if (f"\n{stem}" if is_short(stem) else stem) in joined}
    return Held(having, len(words))


def _neighbors(lookup: Lookup, numbers: Iterable[int]) -> dict[tuple[int, int], int]:
    """Return the messages above the given ones in the tree, and below those, by distance."""
    found: dict[tuple[int, int], int] = {}
    for number in numbers:
        above: int | None = number
        for distance in range(1, _AROUND + 1):
            above = None if above is None else lookup.above(above)
            if above is None:
                break
            found[number, -distance] = above
            found[above, distance] = number
    return found
