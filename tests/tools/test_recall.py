"""Recall: whatever left the prompt can be read back, piece by piece, by id and by words."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import count_tokens, estimate_tokens
from rolling_chat.message_lines import LONGEST_LINE, piece_lines
from rolling_chat.messages import Json, Message, ToolCall
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.recall import Recall


class PlainCounter:
    def count_text(self, text: str) -> int:
        return count_tokens(text)

    def count_message(self, message: Message) -> int:
        return estimate_tokens([message])


@dataclass(frozen=True)
class PlainMemory:
    messages: Sequence[Message]
    cap: int = 8_000
    excluded: frozenset[str] = frozenset()
    estimator: PlainCounter = field(default_factory=PlainCounter)

    async def branch(self) -> Sequence[Message]:
        return self.messages


WRITE = ToolCall("c1", "write_file", json.dumps({"path": "notes/a.txt", "content": "first\nsecond line"}))
LOG = "\n".join(f"line {number} took {number * 7} ms" for number in range(1, 901))
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40}}
BRANCH = (
    Message("user", "The deploy key is kept in ops/keys.txt.", id="m1"),
    Message("assistant", "I write that down.", tool_calls=(WRITE,), id="m2"),
    Message("tool", "done", tool_call_id="c1", name="write_file", id="m3"),
    Message("user", "Run the tests.", id="m4"),
    Message("assistant", tool_calls=(ToolCall("c2", "run_command", '{"command": "make test"}'),), id="m5"),
    Message("tool", LOG, tool_call_id="c2", name="run_command", id="m6"),
    Message("user", ({"type": "text", "text": "What is on this?"}, IMAGE), id="m7"),
)


def recall(memory: PlainMemory | None = None, **arguments: Json) -> str:
    context = ToolContext(Path(), {}, memory or PlainMemory(BRANCH))
    return asyncio.run(Recall().run(arguments, context)).text


def test_the_head_is_the_whole_of_a_short_message() -> None:
    assert recall(id="r1") == "[r1: user, 1 line]\nThe deploy key is kept in ops/keys.txt."


@pytest.mark.parametrize("id", ["r1", "1", 1, " R1 ", "[recall: r1]"])
def test_an_id_is_understood_however_a_model_copies_it(id: Json) -> None:
    assert "ops/keys.txt" in recall(id=id)


def test_the_lines_that_a_shortened_result_lacks_are_read_as_they_are_named() -> None:
    said = recall(id="[recall: r6 lines 200-201, 300-400]")
    assert said == "[r6: result of run_command, 900 lines]\n" + "\n".join(
        ("line 200 took 1400 ms", "line 201 took 1407 ms", "[lines 200-201 of 900]")
    )
    assert "line 7 took" in recall(id="r6 lines 200-201", start=7, end=7)


def test_a_long_result_says_how_to_go_on_and_so_comes_whole() -> None:
    memory = PlainMemory(BRANCH, cap=900)
    answer, seen = recall(memory, id="r6"), list[str]()
    for _ in range(50):
        assert count_tokens(answer) <= 900
        seen += [line for line in answer.split("\n") if line.startswith("line ")]
        more = re.search(r"go on with mode=lines start=(\d+)\]", answer)
        if more is None:
            break
        answer = recall(memory, id="r6", mode="lines", start=int(more[1]))
    assert "\n".join(seen) == LOG


def test_the_tail_is_the_end_and_says_what_is_before_it() -> None:
    answer = recall(PlainMemory(BRANCH, cap=400), id="r6", mode="tail")
    head, note, *lines = answer.split("\n")
    first = int(re.findall(r"\[lines (\d+)-900 of 900; before them: mode=lines end=\d+\]", note)[0])
    assert "900 lines" in head
    assert "\n".join(lines) == "\n".join(LOG.split("\n")[first - 1 :])


def test_lines_are_counted_from_1_and_both_ends_are_included() -> None:
    answer = recall(id="r6", mode="lines", start=10, end="12")
    assert answer.split("\n")[1:-1] == LOG.split("\n")[9:12]
    assert answer.endswith("[lines 10-12 of 900]")


def test_grep_numbers_the_lines_and_shows_their_neighbours() -> None:
    answer = recall(id="r6", pattern=r"^LINE 88\b")
    assert answer.split("\n")[1:] == [
        "[1 of 900 lines match]",
        "87- line 87 took 609 ms",
        "88: line 88 took 616 ms",
        "89- line 89 took 623 ms",
    ]


def test_what_is_no_regular_expression_is_looked_for_as_it_stands() -> None:
    memory = PlainMemory((Message("user", "call parse(\nand then stop"),))
    answer = recall(memory, id="r1", mode="grep", pattern="parse(")
    assert "plain text" in answer
    assert "1: call parse(" in answer


def test_a_pattern_without_end_is_stopped_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rolling_chat.tools.memory_grep._TIMEOUT", 0.5)
    memory = PlainMemory((Message("user", "a" * 400 + "!"),))
    with pytest.raises(ToolError, match="stopped: use a plainer one"):
        recall(memory, id="r1", pattern="(a+)+$")


def test_the_arguments_of_a_call_are_read_back_as_lines() -> None:
    answer = recall(id="r2")
    assert answer.split("\n") == [
        "[r2: assistant calling write_file, 6 lines]",
        "I write that down.",
        "[call of write_file]",
        "path: notes/a.txt",
        "content:",
        "first",
        "second line",
    ]


def test_an_image_is_named_and_never_poured_out() -> None:
    answer = recall(id="r7")
    assert "What is on this?" in answer
    assert "[image, 509 bytes as sent" in answer
    assert "iVBOR" not in answer


def test_a_range_is_listed_a_line_a_message() -> None:
    lines = recall(id="r1-r3, r6").split("\n")
    assert [line.split(",")[0] for line in lines] == [
        "r1 user", "r2 assistant calling write_file", "r3 result of write_file", "r6 result of run_command",
    ]  # fmt: skip
    assert all("tokens: " in line for line in lines)


def test_a_listing_that_is_too_long_says_where_to_go_on() -> None:
    memory = PlainMemory(tuple(replace(BRANCH[0], id=str(at)) for at in range(300)), cap=300)
    answer = recall(memory, id="r1-r300")
    shown = answer.count("ops/keys.txt")
    assert answer.endswith(f"[{300 - shown} more; go on with id=r{shown + 1}-r300]")
    assert count_tokens(answer) <= 300


def test_a_search_names_the_message_and_shows_the_line() -> None:
    answer = recall(search="where are the deploy keys?")
    assert answer.startswith("r1 user, line 1 of 1\n  1: The deploy key is kept in ops/keys.txt.")
    assert "line 88 took" in recall(search="616 ms")


def test_a_search_leaves_out_the_request_itself_what_recall_brought_and_what_is_excluded() -> None:
    asked = ToolCall("c9", "recall", '{"search": "deploy key"}')
    branch = (
        *BRANCH,
        Message("user", "What is the deploy key?"),
        Message("assistant", tool_calls=(asked,)),
        Message("tool", "r1 user: The deploy key is kept in ops/keys.txt.", tool_call_id="c9", name="recall"),
    )
    assert recall(PlainMemory(branch), search="deploy key").startswith("r1 user")
    assert "r8" not in recall(PlainMemory(branch), search="deploy key")
    assert "r10" not in recall(PlainMemory(branch), search="deploy key")
    hidden = PlainMemory(branch, excluded=frozenset({"m1"}))
    with pytest.raises(ToolError, match="Nothing that was said"):
        recall(hidden, search="deploy key")
    with pytest.raises(ToolError, match="r1 was excluded by the user"):
        recall(hidden, id="r1")
    assert "ops" not in recall(hidden, id="r1-r2")


def test_the_many_ranges_of_a_notice_are_read_and_a_search_can_be_kept_to_some() -> None:
    assert recall(id="r1, r3,").count("\n") == 1
    assert recall(id="r1-r3," * 600).startswith("r1 user")
    assert "r6" in recall(search="tests", id="r4-r6")
    with pytest.raises(ToolError, match="Nothing that was said"):
        recall(search="deploy key", id="r4-r6")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Give an id (r1 to r7) or words"),
        ({"id": "r999"}, "this conversation has r1 to r7"),
        ({"id": "r0"}, "the system message"),
        ({"id": " , "}, "There is no '' here"),
        ({"id": "seven"}, "There is no 'seven' here"),
        ({"id": "r5-r2"}, "There is no 'r5-r2'"),
        ({"id": "r6", "mode": "middle"}, "The modes are: head, tail, lines, grep"),
        ({"id": "r6", "mode": "lines", "start": 901}, "900 lines; line 901 is beyond"),
        ({"id": "r6", "mode": "lines", "start": 5, "end": 4}, "'end' (4) must not be below 'start' (5)"),
        ({"id": "r6", "mode": "grep"}, "'pattern' is missing"),
        ({"id": "r6", "pattern": "zebra"}, "No line of r6 matches 'zebra'"),
        ({"id": "r6", "pattern": "a\nb"}, "must be one line"),
        ({"search": "zebra quagga"}, "Nothing that was said or done earlier holds 'zebra quagga'"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_what_can(arguments: dict[str, Json], said: str) -> None:
    with pytest.raises(ToolError) as caught:
        recall(**arguments)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_there_is_no_conversation_it_says_so() -> None:
    with pytest.raises(ToolError, match="no conversation"):
        asyncio.run(Recall().run({"id": "r1"}, ToolContext(Path(), {})))
    with pytest.raises(ToolError, match="nothing yet"):
        recall(PlainMemory(()), id="r1")


HUGE = "x" * 3_000_000
ODD = [
    "", " ", "\n\n", HUGE, "中" * 40_000, "😀" * 9_000, "a\x00b", "\ud800", "\u2028" * 50, " " * 200_000,
    "é\r\n" * 900,
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:3]))
@pytest.mark.parametrize("cap", [60, 2_000])
@pytest.mark.parametrize("mode", ["head", "tail"])
def test_every_answer_fits_the_cap_whatever_it_is_of(text: str, cap: int, mode: str) -> None:
    memory = PlainMemory((Message("tool", text, tool_call_id="c", name="t"),), cap=cap)
    assert count_tokens(recall(memory, id="r1", mode=mode)) <= cap


@given(text=st.text(max_size=3_000) | st.text("ab\n", max_size=3_000), start=st.integers(1, 20))
def test_lines_are_those_of_the_text_and_none_is_endless(text: str, start: int) -> None:
    message = Message("user", text)
    lines = piece_lines(message)
    assert all(len(line) <= LONGEST_LINE for line in lines)
    if "\r" not in text:
        assert "".join(lines) == text.replace("\n", "")
    if start <= len(lines):
        assert (
            recall(PlainMemory((message,)), id=1, start=start, end=start).split("\n")[1] == lines[start - 1]
        )
