"""Names that a summary leaves out, ranked, and how a line is added back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.summary_grounding import Source, names_in, plain_name
from rolling_chat.context.summary_left_out import LeftOutLine, left_out, with_line
from rolling_chat.messages import Message, ToolCall

TALK = [
    Message("user", "The service Kestrel listens on port 8471. Thanks! And Marta reviews it."),
    Message("assistant", "The log at src/app_1.py has 40 lines. All is fine.",
            tool_calls=(ToolCall("a", "read_file", '{"path": "conf/kestrel.toml"}'),)),
    Message("tool", "row_17 = broken\nrow_18 = fine", tool_call_id="a"),
]  # fmt: skip
GONE = list(enumerate(TALK, 1))


def count(text: str) -> int:
    return (len(text.encode()) + 3) // 4


def test_what_the_user_said_and_is_hard_to_guess_comes_first() -> None:
    lines = left_out(GONE, "The service is Kestrel.")
    assert [(line.index, line.names) for line in lines] == [
        (1, ("8471",)),
        (1, ("Marta",)),
        (2, ("src/app_1.py", "40")),
        (2, ("conf/kestrel.toml",)),
    ]
    assert lines[0].line == "The service Kestrel listens on port 8471."


def test_names_used_later_come_first_and_names_in_results_count_only_then() -> None:
    lines = left_out(
        GONE, "Kestrel on port 8471, reviewed by Marta", ["What of conf/kestrel.toml?", "row_17!"]
    )
    assert [line.names for line in lines] == [("conf/kestrel.toml",), ("src/app_1.py", "40"), ("row_17",)]


def test_the_messages_themselves_leave_nothing_out() -> None:
    assert left_out(GONE, "\n".join([*(one.text for one in TALK), "conf/kestrel.toml"])) == []


def test_a_name_is_listed_once() -> None:
    twice = [(1, Message("user", "Port 8471 it is.")), (5, Message("user", "Again, port 8471 and 9000."))]
    assert [line.names for line in left_out(twice, "")] == [("8471", "9000")]


def test_a_line_is_added_under_its_heading_with_its_messages_id() -> None:
    line = LeftOutLine(7, "user", "The port is 8471.", ("8471",))
    assert with_line("Task:\n- Look.", line, 50, count) == "Task:\n- Look.\nFacts:\n- The port is 8471. (r7)"
    assert with_line("They looked.", line, 50, count) == "They looked.\nThe port is 8471. (r7)"


def test_a_line_never_takes_a_summary_over_its_cap_and_takes_nothing_out() -> None:
    line = LeftOutLine(7, "user", "We talked and talked. " * 6 + "The port is 8471.", ("8471",))
    assert with_line("They looked.", line, 30, count).endswith("The port is 8471. (r7)")
    assert with_line("They looked.", line, 5, count) == ""


@given(st.lists(st.text(max_size=200), max_size=5), st.text(max_size=200), st.integers(0, 60))
def test_listed_names_are_missing_and_can_be_added_within_the_cap(
    said: list[str], summary: str, cap: int
) -> None:
    lines = left_out([(at, Message("user", text)) for at, text in enumerate(said, 1)], summary)
    named = [plain_name(name) for line in lines for name in line.names]
    assert len(named) == len(set(named))
    for line in lines:
        assert not any(Source(summary).has(name) for name in line.names)
        assert set(map(plain_name, line.names)) <= set(
            map(plain_name, names_in(" ".join(said[line.index - 1].split())))
        )
        assert count(with_line(summary, line, cap, count)) <= cap
