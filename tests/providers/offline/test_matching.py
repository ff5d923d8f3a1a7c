"""The best-matching sentences of a text."""

from __future__ import annotations

from rolling_chat.providers.offline.matching import best_matches, read_sentences, split_sentences


def _best(question: str, *texts: str) -> list[str]:
    return [sentence.text for sentence in best_matches(question, read_sentences(texts))]


def test_rare_words_decide() -> None:
    texts = ["The server runs in Berlin. The server is old. The backup server is called Humboldt."]
    assert _best("What is the backup server called?", *texts) == ["The backup server is called Humboldt."]


def test_among_equals_the_newer_one_counts_too_and_stands_last() -> None:
    assert _best(
        "Which port does the proxy use?", "The proxy uses port 80.", "The proxy uses port 8080."
    ) == [
        "The proxy uses port 80.",
        "The proxy uses port 8080.",
    ]


def test_nothing_is_better_than_a_poor_match() -> None:
    assert (
        _best("What is the deploy key for production?", "The weather is fine.", "A key hangs by the door.")
        == []
    )


def test_a_question_of_empty_words_matches_nothing() -> None:
    assert _best("what is it?", "It is what it is.") == []


def test_plurals_and_case_do_not_matter() -> None:
    assert _best("RELEASES?", "The release is on Monday.") == ["The release is on Monday."]


def test_a_file_name_does_not_end_a_sentence() -> None:
    assert split_sentences("It is in ops/keys.txt now. Yes!") == ["It is in ops/keys.txt now.", "Yes!"]


def test_an_endless_line_is_cut() -> None:
    assert [len(piece) for piece in split_sentences("x" * 100_000)] == [400]
