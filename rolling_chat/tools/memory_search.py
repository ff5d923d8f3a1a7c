"""Finding the messages of a branch that answer a question, by its words.

Without an index it is one pass over the text: a branch is in memory anyway, there is nothing that could be
out of step with it, and every script, path and identifier is found that holds the word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rolling_chat.message_lines import RECALL, piece_lines, piece_text
from rolling_chat.messages import Message
from rolling_chat.search_lines import Query, count_of
from rolling_chat.search_ranking import Found, Held, Ranking, Statistics, distinct
from rolling_chat.search_terms import fold

_LOOK_BACK = 100  # messages from a reply to its request
_TITLE = 300  # characters of what a message answers that are read with it
_IN_CALL, _IN_REQUEST = 0.6, 0.4  # in the call that a result answers, in the request that a reply answers
_LETTERS = 6  # of a word, with the space after it
_DEFAULT = Ranking()


def search_branch(
    branch: Sequence[Message],
    question: str,
    indexes: Iterable[int],
    most: int,
    ranking: Ranking = _DEFAULT,
) -> list[Found]:
    """Rank the messages at the given indexes (from 1) by how well they answer a question, best first.

    Of several messages with the same line only the newest comes, and what `recall` was asked and
    brought is left out: it is a copy.
    """
    query = Query.of(question)
    searched = [index for index in indexes if not _is_recall(branch[index - 1])]
    held, statistics = _first_pass(branch, query.stems, searched)
    if not held:
        return []
    messages = _Searched(branch, frozenset(searched))
    return distinct(ranking.rank(query, held, statistics, messages), messages, most)


@dataclass(frozen=True, slots=True)
class _Searched:
    """The messages of a branch that may be found (`search_ranking.Messages`)."""

    branch: Sequence[Message]
    indexes: frozenset[int]
    split: dict[int, list[str]] = field(default_factory=dict)

    def lines(self, index: int) -> Sequence[str]:
        if index not in self.split:
            self.split[index] = piece_lines(_without_recall(self.branch[index - 1]))
        return self.split[index]

    def title(self, index: int) -> tuple[str, float]:
        """The call of a result, and the request of a reply."""
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
        before = range(index - 1, max(0, index - 1 - _LOOK_BACK), -1)
        return next((one for one in before if self.branch[one - 1].role == wanted), None)

    def is_prose(self, index: int) -> bool:
        return self.branch[index - 1].role != "tool"

    def neighbor(self, index: int, distance: int) -> int | None:
        return index + distance if index + distance in self.indexes else None

    def age(self, index: int) -> float:
        return index / len(self.branch)


def _first_pass(
    branch: Sequence[Message], stems: Sequence[str], indexes: Iterable[int]
) -> tuple[dict[int, Held], Statistics]:
    """Return what each message holds of the question, and how common its stems are."""
    held: dict[int, Held] = {}
    holders: Counter[str] = Counter()
    total = letters = 0
    is_asked = False  # whether the calls hold something, for the results that answer them
    for index in indexes:
        message = branch[index - 1]
        text = fold(piece_text(_without_recall(message)))
        total += 1
        letters += len(text)
        counts = {one: count for one in stems if (count := count_of(text, one))}
        holders.update(counts.keys())
        if message.role != "tool":
            is_asked = bool(counts and message.tool_calls)
        if counts or (is_asked and message.role == "tool"):
            held[index] = Held(counts, len(text) / _LETTERS)
    return held, Statistics(holders, total, letters / _LETTERS / max(total, 1))


def _without_recall(message: Message) -> Message:
    """Return the message as it is searched: what it asked of `recall` are the words of a question."""
    if all(call.name != RECALL for call in message.tool_calls):
        return message
    others = tuple(call for call in message.tool_calls if call.name != RECALL)
    return replace(message, tool_calls=others)


def _is_recall(message: Message) -> bool:
    return message.role == "tool" and message.name == RECALL
