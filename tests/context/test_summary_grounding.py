"""Whether a summary is grounded in the messages that it replaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.summary_extraction import extract
from rolling_chat.context.summary_grounding import (
    Expected,
    Source,
    expect,
    foreign_lines,
    judge,
    names_in,
    names_used,
    plain_name,
    specificity,
)
from rolling_chat.messages import Message

SAID = [
    "My project is called Kestrel, it listens on port 8471 and its settings are in conf/kestrel.toml.",
    "Why does the parser drop trailing tabs?",
    "And what does a closure capture?",
    "How are generators resumed after a yield?",
]
ANSWERS = [
    "Noted: Kestrel, port 8471.",
    "Because strip() takes whitespace of every kind; rstrip with a newline keeps tabs.",
    "The variables of the enclosing scope, by reference.",
    "By next() or send(), which continue behind the expression.",
]
SOURCE = "\n".join(text for turn in zip(SAID, ANSWERS, strict=True) for text in turn)
EXPECTED = expect(SAID, 400)
GOOD = """\
The project Kestrel listens on port 8,471; its settings are in conf/kestrel.toml.
The parser drops trailing tabs for strip() takes whitespace of every kind; rstrip with a newline does not.
A closure captures variables of the enclosing scope by reference; generators resume by next() or send()."""


def test_a_summary_in_its_own_words_is_grounded_and_complete() -> None:
    verdict = judge(GOOD, SOURCE, EXPECTED)
    assert verdict.is_grounded
    assert verdict.is_complete


def test_one_about_anagrams_is_about_something_else() -> None:
    verdict = judge(
        "An anagram rearranges the letters of a word; sorted letters of both words are compared.",
        SOURCE,
        EXPECTED,
    )
    assert not verdict.is_grounded
    assert not verdict.is_fair


def test_a_function_that_nobody_mentioned_is_foreign() -> None:
    verdict = judge(f"{GOOD}\nThe function add_numbers was fixed.", SOURCE, EXPECTED)
    assert verdict.foreign == ("add_numbers",)
    assert not verdict.is_grounded


def test_a_copy_of_the_beginning_leaves_the_rest_out() -> None:
    verdict = judge(
        "Why does the parser drop trailing tabs? Because strip() takes whitespace.", SOURCE, EXPECTED
    )
    assert verdict.is_grounded
    assert set(verdict.missing) == {"Kestrel", "8471", "conf/kestrel.toml"}
    assert not verdict.is_fair


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Read src/lexer.py, then run `make lint`.", ["src/lexer.py"]),
        ("The user wants HTTP on port 8080, not 80.", ["HTTP", "8080", "80"]),
        ("It cost 1,234.50 in 3 parts.", ["1,234.50"]),
        ("ask Ada's brother about parseTree and v1.2.3", ["Ada", "parseTree", "v1.2.3"]),
        ("Why? Because. Then e.g. and/or this.", []),
        ("", []),
    ],
)
def test_distinctive_names(text: str, names: list[str]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("said", "source"),
    [("lexer.py", "src/lexer.py"), ("src/lexer.py", "see lexer.py"), ("12500", "12,500"), ("Ada's", "ada")],
)
def test_a_name_is_known_in_another_writing(said: str, source: str) -> None:
    assert judge(f"of {said} all", f"there {source} was", Expected()).foreign == ()


def test_a_number_that_is_only_part_of_another_is_foreign() -> None:
    assert judge("the port is 847", "the port is 8471", Expected()).foreign == ("847",)


def test_what_was_pasted_is_not_expected_word_for_word() -> None:
    pasted = "Why does it fail?\n```\n" + "\n".join(f"frame_{n}.py:{n}00" for n in range(50)) + "\n```"
    assert expect([pasted], 400).names == ()


def test_names_that_were_used_later_are_expected_first_the_most_used_ahead() -> None:
    said = "The reviewer is Marta, the host db_osprey, the port 8471."
    later = ["Ask Marta.", "Is db_osprey up? Marta knows.", "And 9999?"]
    assert names_used(said, later) == ["Marta", "db_osprey"]
    assert expect([said], 17, names_used(said, later)).names == ("Marta", "db_osprey")


def test_what_is_hard_to_guess_is_specific() -> None:
    assert specificity("conf/kestrel.toml") == specificity("8471") > specificity("Marta") > specificity("45")


def test_single_lines_of_an_answer_are_left_out_for_foreign_names_and_not_most_of_it() -> None:
    good = [
        "The port is 8471.",
        "Kestrel is the project.",
        "strip() takes whitespace.",
        "See conf/kestrel.toml.",
    ]
    assert foreign_lines([*good, "add_numbers was fixed."], Source(SOURCE)) == {"add_numbers was fixed."}
    assert foreign_lines([good[0], "add_numbers was fixed."], Source(SOURCE)) == frozenset()


@given(st.lists(st.text(max_size=200), max_size=6), st.text(max_size=200), st.integers(0, 200))
def test_names_that_are_expected_are_bounded_and_in_the_text(said: list[str], later: str, limit: int) -> None:
    names = expect(said, limit, names_used("\n".join(said), [later])).names
    assert sum(map(len, names)) <= limit
    assert {plain_name(name) for name in names} <= {
        plain_name(name)
        for text in ("\n".join(said), *said)
        for name in (*names_in(text), *names_in(text[:300]))
    }


@given(st.text(max_size=400))
def test_a_text_is_grounded_in_itself_and_keeps_all_of_itself(text: str) -> None:
    verdict = judge(text, text, expect([text], 10_000))
    assert verdict.is_grounded or not text.strip()
    assert verdict.is_complete


@given(st.lists(st.sampled_from(SAID + ANSWERS), min_size=1, max_size=8))
def test_what_is_extracted_word_for_word_is_grounded(said: list[str]) -> None:
    messages = [Message("user" if text in SAID else "assistant", text) for text in said]
    summary = extract(messages, "", 800, lambda text: len(text) // 4)
    verdict = judge(summary, "\n".join(said), expect([t for t in said if t in SAID], 800))
    assert verdict.is_grounded
    assert verdict.is_complete
