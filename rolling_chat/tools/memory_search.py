"""Search a branch for the messages that answer a question, by its words."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from rolling_chat.message_lines import piece_lines, without_recall
from rolling_chat.messages import Message
from rolling_chat.search_lines import Query
from rolling_chat.search_ranking import Found, Held, Ranking, Statistics, distinct
from rolling_chat.search_terms import words_of
from rolling_chat.tools.branch_index import BranchIndex, best_covered, bitmap_of, indexes_of

_LOOK_BACK = 100  # messages from a reply to its request
_TITLE = 300  # characters of the call or request that a message answers
_IN_CALL, _IN_REQUEST = 0.6, 0.4  # in the call that a result answers, in the request that a reply answers
_MAX_RESULTS = 16  # of one reply that are found by its calls
_RARE = 20  # messages that have a rare word, or a twentieth of them if that is more
_DEFAULT = Ranking()

# That of the branch which was searched last: it is made in seconds for the longest and followed in no time.
_INDEX = BranchIndex()
_INDEX_LOCK = threading.Lock()


def search_branch(
    branch: Sequence[Message],
    question: str,
    indexes: Iterable[int],
    most: int,
    *,
    ranking: Ranking = _DEFAULT,
    hidden: Collection[int] = (),
) -> list[Found]:
    """Rank the messages at the given indices (from 1) by how well they answer a question, best first.

    Messages in `hidden` are left out, and so are the calls and results of `recall`, which are copies. Of
    several messages with the same line, only the newest is included.
    """
    query = Query.of(question)
    with _INDEX_LOCK:
        _INDEX.follow(branch)
        searched = bitmap_of(indexes) & ~bitmap_of(hidden) & ~_INDEX.copies
        having = {one: bits for one in query.stems if (bits := _INDEX.having(one) & searched)}
        holders = {one: bits.bit_count() for one, bits in having.items()}
        statistics = Statistics(holders, max(1, searched.bit_count()), _INDEX.usual_length)
        chosen = _candidates(having, statistics, _INDEX.results & searched, _INDEX.calls, ranking.candidates)
        held = _held(having, chosen, _INDEX, [at for at in chosen if branch[at - 1].role != "tool"])
    if not held:
        return []
    messages = _Searched(branch)
    return distinct(ranking.rank(query, held, statistics, messages), messages, most)


def telling_part(
    branch: Sequence[Message], question: str, indexes: Iterable[int], hidden: Collection[int] = ()
) -> tuple[str, list[int]]:
    """Return the most specific part of a question, folded, and the prose messages with it, newest first.

    It is the name in the fewest messages, or without a name the rarest word, if that is rare. It is empty if
    no such part is in several messages.
    """
    query = Query.of(question)
    with _INDEX_LOCK:
        _INDEX.follow(branch)
        tools = _INDEX.results | _INDEX.calls | _INDEX.copies
        prose = bitmap_of(indexes) & ~bitmap_of(hidden) & ~tools
        names = [(name, prose & _having_all(tuple(words_of(name)))) for name in query.names]
        words = [(stem, prose & _INDEX.having(stem)) for stem in query.stems]
        rare = max(_RARE, len(branch) // _RARE)
    words = [(stem, bits) for stem, bits in words if bits.bit_count() <= rare]
    for parts in (names, words):
        if repeated := [(bits.bit_count(), part, bits) for part, bits in parts if bits.bit_count() > 1]:
            _, part, bits = min(repeated)
            return part, indexes_of(bits)[::-1]
    return "", []


def _having_all(stems: Sequence[str]) -> int:
    """Return the bitmap of the messages that have all of these stems."""
    return reduce(and_, map(_INDEX.having, stems)) if stems else 0


def _candidates(
    having: Mapping[str, int], statistics: Statistics, results: int, calls: int, limit: int
) -> list[int]:
    """Return the messages with most of the question, by themselves or together with a neighbor."""
    weights = statistics.weights(having)
    answered = {one: _answering(bits & calls, results) for one, bits in having.items()}
    anything = 0
    for bits in having.values():
        anything |= bits & ~results
    alone = [(weights[one], bits | answered[one]) for one, bits in having.items()]
    together = [(weights[one], (bits | bits << 1 | bits >> 1) & anything) for one, bits in having.items()]
    return list(dict.fromkeys(best_covered(alone, limit) + best_covered(together, limit // 2)))


def _answering(calls: int, results: int) -> int:
    """Return the bitmap of the results that directly follow calls."""
    found, following = 0, calls
    for _ in range(_MAX_RESULTS):
        following = following << 1 & results
        if not following:
            break
        found |= following
    return found


def _held(
    having: Mapping[str, int], chosen: Sequence[int], index: BranchIndex, prose: Sequence[int]
) -> dict[int, Held]:
    """Return the words of the chosen messages, and of the neighbors of prose messages among them."""
    size = index.messages // 8 + 1
    bitmaps = {one: bits.to_bytes(size, "little") for one, bits in having.items()}
    held = dict.fromkeys(chosen, Held({}, 0))
    around = {*chosen}
    around |= {one for at in prose for one in range(max(1, at - 2), min(index.messages, at + 2) + 1)}
    for at in around:
        if counts := {stem: 1 for stem, bits in bitmaps.items() if bits[at >> 3] >> (at & 7) & 1}:
            held[at] = Held(counts, index.length(at))
    return held


@dataclass(frozen=True, slots=True)
class _Searched:
    """The messages of a branch for ranking (`search_ranking.Messages`)."""

    branch: Sequence[Message]
    split: dict[int, list[str]] = field(default_factory=dict)

    def lines(self, index: int) -> Sequence[str]:
        if index not in self.split:
            self.split[index] = piece_lines(without_recall(self.branch[index - 1]))
        return self.split[index]

    def title(self, index: int) -> tuple[str, float]:
        """Return the call of a result or the request of a reply, with its weight."""
        asking = self.asked_by(index)
        if asking is None:
            return "", 0.0
        message, earlier = self.branch[index - 1], self.branch[asking - 1]
        if message.role != "tool":
            return earlier.text[:_TITLE], _IN_REQUEST
        calls = [call for call in earlier.tool_calls if call.id == message.tool_call_id]
        return " ".join(f"{call.name} {call.arguments}" for call in calls)[:_TITLE], _IN_CALL

    def asked_by(self, index: int) -> int | None:
        role = self.branch[index - 1].role
        if role == "user":
            return None
        wanted = "assistant" if role == "tool" else "user"
        for one in range(index - 1, max(0, index - 1 - _LOOK_BACK), -1):
            if self.branch[one - 1].role == wanted:
                return one
        return None

    def is_prose(self, index: int) -> bool:
        return self.branch[index - 1].role != "tool"

    def neighbor(self, index: int, distance: int) -> int | None:
        other = index + distance
        return other if 1 <= other <= len(self.branch) else None

    def age(self, index: int) -> float:
        return index / len(self.branch)
