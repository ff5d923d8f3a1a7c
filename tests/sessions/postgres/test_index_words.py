"""The words that the index has of a text, and what finds them."""

from __future__ import annotations

import pytest

from rolling_chat.sessions.postgres.index_words import any_word, every_word, index_words
from rolling_chat.sessions.search_query import read_query


def test_words_are_small_bare_and_know_where_they_stand() -> None:
    assert index_words("Où, l'Été? foo_bar été.") == "ou:1 l:2 ete:3,6 foo:4 bar:5"


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("Zebra crossing", "((zebra) & (crossing))"),
        ('"two words" one', "((two <-> words) & (one))"),
        ("begin*", "(begin:*)"),
        ("foo_bar", "(foo <-> bar)"),
        ("':* & !", ""),
    ],
)
def test_a_query_is_of_the_same_words_and_has_no_operators(words: str, query: str) -> None:
    assert every_word(read_query(words)) == query


def test_any_form_of_a_word_is_found_without_those_that_say_nothing() -> None:
    assert any_word(read_query("how was the parser tested")) == "((pars:*) | (test:*))"


def test_a_huge_text_is_indexed_by_its_first_words() -> None:
    words = index_words(" ".join(f"word{n}" for n in range(200_000)))
    assert len(words.encode()) < 1_000_000
    assert words.startswith("word0:1 word1:2")
