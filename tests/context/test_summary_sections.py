"""A summary by headings: parsed leniently, extended without losing a fact, and within its cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.summary_grounding import plain_name
from rolling_chat.context.summary_sections import (
    FACTS,
    OPEN,
    Sections,
    Worth,
    extended,
    fitted,
    read_sections,
    shortened,
)
from rolling_chat.search_terms import content_stems

BY_HEADING = """\
Task:
- Fix the lexer.
Facts:
- The port is 8471.
- The host is db_osprey.
Open:
- E4417 in the log"""
LINES = [
    "The port is 8471.", "Marta reviews src/lexer.py.", "- none", "**Facts**", "Facts:", "## Open ends",
    "Task: fix it", "1. Decisions:", "* a_b_c was renamed", "so " * 30, "They talked. " * 40,
    "事实：\n- 端口是 8471", "Overtaken:", "Files:", "", "   ", "The parser is slow.",
]  # fmt: skip
texts = st.lists(st.sampled_from(LINES) | st.text(max_size=300), max_size=25).map("\n".join)


def count(text: str) -> int:
    return (len(text.encode()) + 3) // 4


@pytest.mark.parametrize(
    "text",
    [
        BY_HEADING,
        BY_HEADING.replace("Task:", "## Task").replace("Facts:", "**Facts:**").replace("Open:", "__Open__"),
        BY_HEADING.replace("Task:\n-", "1. Task:")
        .replace("Facts:", "Key facts")
        .replace("Open:", "Next steps:"),
        BY_HEADING.replace("- ", "• ").replace("Facts:", "Fakten:").replace("Open:", "Offene Punkte:"),
        BY_HEADING + "\nDecisions:\n- None.\nFiles:\n- n/a",
        BY_HEADING.replace("- The port", "- The port is 8471.\n- The port"),
    ],
)
def test_headings_are_read_in_any_decoration(text: str) -> None:
    assert read_sections(text).text == BY_HEADING


@pytest.mark.parametrize(
    "text",
    ["Files were read: three.", "fact 7", "Open the door: it is open.", "They talked of the lexer."],
)
def test_a_line_that_only_begins_like_a_heading_is_none(text: str) -> None:
    assert list(read_sections(text).all) == [("", text)]


@pytest.mark.parametrize("text", ["so " * 400, "None.", "- n/a\n- nothing yet", "…", "Task:\nFacts:\n"])
def test_what_goes_in_a_loop_or_says_nothing_is_left_out(text: str) -> None:
    assert read_sections(text).text == ""


def test_an_update_extends_by_heading_and_loses_no_line() -> None:
    new = read_sections("Facts:\n- The port is 8471.\n- Marta reviews it.\nDecisions:\n- Keep 45 days.")
    assert extended(read_sections(BY_HEADING), new, ()).text == (
        "Task:\n- Fix the lexer.\nDecisions:\n- Keep 45 days.\n"
        "Facts:\n- The port is 8471.\n- The host is db_osprey.\n- Marta reviews it.\n"
        "Open:\n- E4417 in the log"
    )


def test_a_line_that_says_the_same_and_more_takes_the_place_of_the_other() -> None:
    new = read_sections("Facts:\n- The port is 8471, and TLS is on.")
    facts = extended(read_sections(BY_HEADING), new, ()).of(FACTS)
    assert facts == ["The host is db_osprey.", "The port is 8471, and TLS is on."]


@pytest.mark.parametrize("other", ["The port is 9000.", "Bob is 31 years old.", "Test 13 failed."])
def test_lines_of_the_same_words_with_other_values_both_stay(other: str) -> None:
    old = read_sections("Facts:\n- The port is 8471.\n- Ada is 31 years old.\n- Test 12 failed.")
    assert extended(old, read_sections(f"Facts:\n- {other}"), ()).of(FACTS) == [*old.of(FACTS), other]


def test_what_an_update_names_as_overtaken_goes_unless_that_is_most_of_it() -> None:
    old = read_sections(BY_HEADING)
    new = read_sections("Facts:\n- The port is 9000.\nOvertaken:\n- The port is 8471.")
    assert extended(old, new, ()).of(FACTS) == ["The host is db_osprey.", "The port is 9000."]
    everything = read_sections("Overtaken:\n" + "\n".join(line for _, line in old.all))
    assert extended(old, everything, ()).text == BY_HEADING


def test_what_is_open_stays_open_until_newer_messages_are_about_it() -> None:
    old = read_sections("Open:\n- E4417 in the log\n- Ask Marta for a review.")
    new, stems = read_sections("Open:\n- none"), content_stems("The log has E4417 no more.")
    assert extended(old, new, stems).of(OPEN) == ["Ask Marta for a review."]
    assert extended(old, Sections(), stems).of(OPEN) == old.of(OPEN)


def test_names_that_were_used_later_are_kept_longest() -> None:
    text = "Facts:\n" + "\n".join(f"- The port of {name} is on." for name in ("Ada", "Bob", "Eve", "Dan"))
    kept = fitted(read_sections(text), 14, count, Worth(frozenset({plain_name("Bob")})))
    assert "Bob" in kept
    assert "Ada" not in kept


def test_what_two_headings_say_stands_there_once() -> None:
    said = "Kestrel listens on port 8471, and its settings are in conf/kestrel.toml."
    old = read_sections(f"Decisions:\n- The user and the assistant agreed that {said}")
    new = read_sections(f"Facts:\n- The user noted that {said}\n- The host is db_osprey.")
    assert extended(old, new, ()).text == f"{old.text}\nFacts:\n- The host is db_osprey."


@pytest.mark.parametrize(
    "line",
    [
        "The user did not mention any open issues.",
        "No files were read or changed.",
        "No decisions were made yet",
        "There are no open questions at the moment.",
    ],
)  # fmt: skip
def test_a_line_that_says_that_there_is_nothing_is_left_out(line: str) -> None:
    assert read_sections(f"Open:\n- {line}").text == ""


@pytest.mark.parametrize("line", ["No tests fail.", "The user did not want tabs.", "There is no port 8471."])
def test_a_line_that_denies_something_stays(line: str) -> None:
    assert read_sections(f"Facts:\n- {line}").of(FACTS) == [line]


def test_a_line_with_a_fact_is_kept_longer_than_short_ones_that_name_nothing() -> None:
    fact = "Marta reviews our migrations, and the log of last night had the error E4417, quota exceeded."
    text = f"Task:\n- They talked.\n- So it went.\nDecisions:\n- Just so.\nFacts:\n- {fact} We look later."
    assert fitted(read_sections(text), 30, count, Worth()) == f"Facts:\n- {fact}"


def test_a_long_line_is_shortened_to_its_best_sentences() -> None:
    line = "We talked and talked. " * 5 + "The port is 8471. " + "And so it went on. " * 5
    assert shortened(line, 40, Worth()) == "The port is 8471. And so it went on."


@given(texts, texts, st.integers(0, 120))
def test_a_summary_is_within_its_cap_whatever_it_was_made_of(old: str, new: str, cap: int) -> None:
    text = fitted(extended(read_sections(old), read_sections(new), content_stems(new)), cap, count, Worth())
    assert count(text) <= cap


@given(texts)
def test_reading_what_was_written_changes_nothing(text: str) -> None:
    written = read_sections(text).text
    assert read_sections(written).text == written


@given(texts, texts)
def test_every_line_of_the_summary_so_far_stays_or_is_in_another(old: str, new: str) -> None:
    before, added = read_sections(old), read_sections(new)
    added.lines.pop("Overtaken", None)
    after = extended(before, added, ())
    for heading, line in before.all:
        stems = set(content_stems(line))
        assert line in after.of(heading) or any(stems & {*content_stems(one)} for one in added.of(heading))
