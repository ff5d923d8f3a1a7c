"""The order of hits: a message counts for its words, its neighbors', and its best line's."""

from __future__ import annotations

from rolling_chat.messages import Message
from rolling_chat.search_ranking import Ranking
from rolling_chat.tools.memory_search import search_branch

FILLER = [Message("user", f"Nothing of note on day {number}, only rain.") for number in range(20)]


def order(branch: list[Message], question: str, ranking: Ranking | None = None) -> list[int]:
    everywhere = range(1, len(branch) + 1)
    return [one.index for one in search_branch(branch, question, everywhere, 9, ranking=ranking or Ranking())]


def test_of_equal_messages_the_one_whose_neighbor_has_the_other_word_comes_first() -> None:
    branch = [
        Message("user", "The repair took nine days."),
        *FILLER,
        Message("assistant", "Did you ever fix the violin?"),
        Message("user", "The repair took two weeks."),
        *FILLER,
        Message("user", "The repair took four hours."),
    ]
    question = "How long did the violin repair take?"
    assert order(branch, question).index(23) < order(branch, question).index(44)
    alone = order(branch, question, Ranking(neighbors=()))
    assert alone.index(44) < alone.index(23)


def test_the_first_and_the_last_message_are_not_behind_those_between() -> None:
    branch = [Message("user", f"Heron {number}") for number in range(10, 22)]
    assert order(branch, "heron")[0] == 12


def test_a_message_without_any_word_is_no_hit() -> None:
    assert order([Message("user", "heron"), Message("assistant", "a gray bird")], "heron") == [1]


def test_a_short_message_is_before_a_long_one_that_says_the_words_far_apart() -> None:
    long = "\n".join(
        ["The violin is brown.", *(f"Line {number}." for number in range(80)), "A repair is due."]
    )
    branch = [Message("user", long), *FILLER, Message("user", "The violin needs a repair."), *FILLER]
    assert order(branch, "violin repair")[0] == 22
