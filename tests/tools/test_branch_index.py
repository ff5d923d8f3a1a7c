"""The index of a branch says of every word which messages have it, however the branch came to be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message, ToolCall
from rolling_chat.search_terms import is_short, split_words
from rolling_chat.tools.branch_index import BranchIndex, best_covered, bitmap_of, indexes_of

WORDS = ["heron", "herons", "max", "maxRetryCount", "port", "report", "7", "77", "密码在哪里", "café", "a"]
STEMS = ["heron", "max", "retr", "port", "7", "密码", "cafe", "a", "zebra"]

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
branches = st.lists(texts, max_size=90).map(lambda said: [Message("user", text) for text in said])


def holding(branch: Sequence[Message], stem: str) -> list[int]:
    return [
        at
        for at, message in enumerate(branch, start=1)
        if any(
            word.startswith(stem) if is_short(stem) else stem in word for word in split_words(message.text)
        )
    ]


@given(branches, branches, st.integers(0, 90), branches)
def test_an_index_that_followed_a_branch_is_that_of_the_branch(
    first: list[Message], second: list[Message], shared: int, third: list[Message]
) -> None:
    index = BranchIndex()
    for branch in (first, first[:shared] + second, first[:shared] + third, first * 3):
        index.follow(branch)
        new = BranchIndex()
        new.follow(branch)
        assert index.messages == len(branch)
        assert index.usual_length == new.usual_length
        for stem in STEMS:
            assert indexes_of(index.having(stem)) == holding(branch, stem)


def test_a_word_that_many_messages_have_is_taken_back_as_one_that_few_have() -> None:
    branch = [Message("user", f"heron {number}") for number in range(300)]
    index = BranchIndex()
    index.follow(branch)
    index.follow([*branch[:9], Message("user", "gull")])
    assert indexes_of(index.having("heron")) == list(range(1, 10))
    index.follow([])
    assert index.having("heron") == 0
    index.follow(branch)
    assert indexes_of(index.having("heron")) == list(range(1, 301))


def test_what_recall_brought_has_no_words_and_what_was_asked_of_it_neither() -> None:
    asked = ToolCall("c1", "recall", '{"search": "heron"}')
    branch = [
        Message("assistant", "I look.", tool_calls=(asked,)),
        Message("tool", "r1: heron", tool_call_id="c1", name="recall"),
        Message("tool", "heron", tool_call_id="c2", name="run_command"),
    ]
    index = BranchIndex()
    index.follow(branch)
    assert indexes_of(index.having("heron")) == [3]
    assert indexes_of(index.copies) == [2]
    assert indexes_of(index.results) == [2, 3]
    assert indexes_of(index.calls) == [1]


@pytest.mark.parametrize("end", ["\n", " "])
def test_a_result_of_megabytes_is_split_part_by_part_and_all_of_it_is_found(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()

    def split(text: str) -> list[str]:
        sizes.append(len(text))
        return split_words(text)

    monkeypatch.setattr("rolling_chat.tools.branch_index.split_words", split)
    text = f"INFO ferry leaves{end}" * 60_000 + "zebra"
    index = BranchIndex()
    index.follow([Message("tool", text, tool_call_id="c", name="run_command")])
    assert max(sizes) <= 200_000
    assert sum(sizes) == len(text)
    assert index.length(1) == 180_001
    assert indexes_of(index.having("zebra")) == [1]


weights = st.sampled_from([1.0, 2.0, 4.0, 8.0])


@given(st.lists(st.tuples(weights, st.integers(0, 2**40 - 1)), max_size=6), st.integers(1, 45))
def test_the_best_covered_are_those_with_the_greatest_sums_the_newest_of_equal_ones(
    weighed: list[tuple[float, int]], most: int
) -> None:
    heaviest = max((weight for weight, _ in weighed), default=1.0)
    sums = {
        at: sum(max(1, round(63 * weight / heaviest)) for weight, bits in weighed if bits >> at & 1)
        for at in range(40)
    }
    best = sorted((at for at in sums if sums[at]), key=lambda at: (-sums[at], -at))[:most]
    assert sorted(best_covered(weighed, most)) == sorted(best)


@given(st.sets(st.integers(1, 400)), st.integers(0, 90), st.integers(0, 90))
def test_indexes_are_the_same_after_they_were_bits(indexes: set[int], start: int, stop: int) -> None:
    assert indexes_of(bitmap_of(indexes)) == sorted(indexes)
    assert indexes_of(bitmap_of(range(start, stop))) == list(range(start, stop))
