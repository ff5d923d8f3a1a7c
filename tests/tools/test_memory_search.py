"""The message that answers a question is among the first that a search finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message, ToolCall
from rolling_chat.tools.memory_search import search_branch
from tests.benchmarks.recall import make_session, rank

NEEDED = 0.85


def found(branch: list[Message], question: str) -> list[int]:
    return [one.index for one in search_branch(branch, question, range(1, len(branch) + 1), 5)]


def test_of_known_questions_the_answer_is_among_the_first_five() -> None:
    branch, questions = make_session(400)
    hits = sum(rank(branch, question) > 0 for question in questions)
    assert hits >= NEEDED * len(questions)


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("The retries are configured in maxRetryCount.", "how did we configure the retry count?"),
        ("密码保存在保险柜里。", "密码在哪里？"),
        ("see src/lexer/tabs.py:88", "src/lexer/tabs.py"),
        ("The café closes at nine.", "When does the cafe close?"),
    ],
)
def test_other_forms_of_the_words_and_any_script_are_found(told: str, asked: str) -> None:
    branch = [Message("user", f"something else {number}") for number in range(30)]
    branch.insert(11, Message("user", told))
    assert found(branch, asked)[0] == 12


def test_the_newer_comes_before_the_older() -> None:
    branch = [
        Message("user", "The port is 8080."),
        Message("user", "something else"),
        Message("user", "The port is 9090."),
    ]
    assert found(branch, "Which port?") == [3, 1]


@pytest.mark.parametrize("end", ["?", "？", "؟", '?"', "."])
def test_a_fact_said_in_a_question_is_found_as_one_said_in_a_statement(end: str) -> None:
    branch = [
        Message("user", f"Could you keep the budget for Lisbon below 900 euros{end}"),
        Message("user", "Lisbon is warm in May."),
        *(Message("user", f"The budget of project {number} is settled.") for number in range(20)),
    ]
    assert found(branch, "What was the budget for Lisbon?")[0] == 1


def test_a_line_that_comes_again_and_again_is_named_once_where_it_is_newest() -> None:
    branch = [Message("user", "The mascot is a heron.") for _ in range(20)]
    assert found(branch, "mascot") == [20]


def test_a_result_is_found_by_the_call_that_it_answers() -> None:
    call = ToolCall("c1", "run_command", '{"command": "make benchmark-payments"}')
    branch = [
        Message("user", "go"),
        Message("assistant", tool_calls=(call,)),
        Message("tool", "p95 312 ms", tool_call_id="c1", name="run_command"),
        *(Message("user", f"p50 of {number} ms") for number in range(20)),
    ]
    assert found(branch, "p95 of the payments benchmark")[0] == 3


def test_only_the_places_given_are_searched() -> None:
    branch = [Message("user", f"heron {number}") for number in range(10)]
    assert {one.index for one in search_branch(branch, "heron", [2, 4], 5)} == {2, 4}


@given(st.text(), st.lists(st.text(max_size=60), max_size=4))
def test_no_text_breaks_a_search(question: str, texts: list[str]) -> None:
    branch = [Message("user", text) for text in [*texts, question]]
    assert all(1 <= place <= len(branch) for place in found(branch, question))
