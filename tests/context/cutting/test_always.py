"""Properties of every text that is cut by kind."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import CountMemo
from rolling_chat.context.tokens import estimator_for
from rolling_chat.context.tool_results import shorten_result, truncate_text
from rolling_chat.messages import Message
from tests.benchmarks.haystacks import KINDS, haystack
from tests.support.conversations import WORDS

count = estimator_for("gpt-4o").count_text
RECALL = "[recall: r17]"
_MARK = re.compile(r"\[… (?:lines? (\d+)(?:-(\d+))?|[\d,]+ characters of line \d+)\]")
_LINES = st.sampled_from(
    [
        "2026-03-01 10:00:00 INFO served 12",
        "2026-03-01 10:00:01 ERROR lost 7",
        "Traceback (most recent call last):",
        '  File "a.py", line 3',
        "src/a.py:12: found",
        "def name(one: int) -> int:",
        "diff --git a/x b/x",
        "@@ -1,3 +1,3 @@",
        "+    added = 1",
        "a,b,1,2.5",
        "a\tb\t3",
        "tests/a.py::test_one PASSED",
        '{"id": 1, "name": "x"}',
        "",
        "\r",
        "é 中 😀 \ud800",
        "[… lines 3-9]",
        "x" * 1_500,
        "some words; " * 200,
    ]
)
TEXTS = st.lists(st.tuples(_LINES, st.integers(1, 60)), min_size=1, max_size=12).map(
    lambda parts: "\n".join("\n".join([line] * many) for line, many in parts)
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=8)
        | st.dictionaries(st.text(max_size=12), inner, max_size=6)
        | st.tuples(inner, st.integers(1, 30)).map(lambda pair: [pair[0]] * pair[1])
    )


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.integers(1, 80).map(lambda size: "a line of text\n" * size),
    _containers,
    max_leaves=20,
)


def _cut(text: str, cap: int, recall: str = RECALL) -> str:
    return shorten_result(
        Message("tool", text, tool_call_id="1"), cap, "auto", count, CountMemo(), recall=recall
    ).text


@given(TEXTS | WORDS, st.integers(1, 800))
def test_a_cut_text_is_within_its_cap_and_never_longer(text: str, cap: int) -> None:
    shorter = _cut(text, cap)
    assert len(shorter) <= len(text)
    if cap >= 40:
        assert count(shorter) <= cap


@given(TEXTS, st.integers(80, 800))
def test_a_cut_text_is_always_the_same_and_stays_when_it_is_cut_again(text: str, cap: int) -> None:
    shorter = _cut(text, cap)
    assert _cut(text, cap) == shorter
    assert _cut(shorter, cap) == shorter


@given(TEXTS, st.integers(150, 800))
def test_every_line_that_is_kept_is_one_of_the_text(text: str, cap: int) -> None:
    body = _cut(text, cap).partition("\n[truncated: ")[0]
    known = set(text.split("\n"))
    for line in body.split("\n"):
        is_part = any(line in whole for whole in known if len(whole) > 1_000)
        assert line in known or is_part or _MARK.fullmatch(line)


@given(_VALUES, st.integers(80, 600), st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json(value: Any, cap: int, indent: int | None, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    shorter = _cut(text, cap)
    assert count(shorter) <= cap or shorter == text
    json.loads(shorter)


@given(st.lists(_containers(_VALUES), min_size=3, max_size=5), st.integers(80, 600))
def test_lines_of_json_stay_lines_of_json(values: list[Any], cap: int) -> None:
    text = "\n".join(json.dumps(value) for value in values)
    for line in _cut(text, cap).split("\n"):
        json.loads(line)


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("JSON")])
@pytest.mark.parametrize("cap", [500, 8_000])
def test_lines_and_marks_together_account_for_the_whole_text(name: str, cap: int) -> None:
    text = haystack(KINDS[name], KINDS[name].needles[0], 0.5, random.Random(name))
    shorter = truncate_text(text, cap, "auto", count, CountMemo(), recall=RECALL)
    lines, at = text.split("\n"), 0
    for line in shorter.partition("\n[truncated: ")[0].split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is None:
            assert lines[at] == line
            at += 1
        else:
            assert int(mark[1]) == at + 1
            at = int(mark[2] or mark[1])
    assert at == len(lines)
