"""Words as a search compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.search_terms import content_stems, fold, stem, words_of

FORMS = [
    ("retry", "retries", "retried"),
    ("configure", "configured", "configuring", "configuration", "configurations"),
    ("deploy", "deploys", "deployed", "deployment"),
    ("run", "runs", "running"),
    ("migrate", "migration", "migrating", "migrations"),
    ("normalise", "normalize", "normalised", "normalisation", "normalization"),
    ("box", "boxes"),
    ("pass", "passes", "passed"),
    ("пароля", "пароль"),
]


@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: forms[0])
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parse_args", ["parse", "args"]),
        ("maxRetryCount", ["max", "retry", "count"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("src/lexer.py", ["src", "lexer", "py"]),
        ("p95 of 8080", ["p95", "of", "8080"]),
        ("café", ["cafe"]),
        ("上海港", ["上海", "海港"]),
        ("使用Redis缓存", ["使用", "redis", "缓存"]),
    ],
)
def test_names_come_apart_and_scripts_without_spaces_go_by_pairs(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == [stem(word) if word.isascii() else word for word in words]


def test_words_without_meaning_are_left_out_unless_there_is_nothing_else() -> None:
    assert content_stems("What was the port of the server?") == [stem("port"), stem("server")]
    assert content_stems("who was it") != []
    assert content_stems("密码是什么") == ["密码"]
    assert content_stems("") == []


@given(st.text())
def test_any_text_can_be_taken_apart_and_a_stem_begins_its_word(text: str) -> None:
    assert fold(text).count("\n") >= text.count("\n")
    content_stems(text)
    for word in fold(text).split():
        assert word.startswith(stem(word))
