"""What recall's search shows of a hit: enough to answer from, and never more than its share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rolling_chat.context import count_tokens
from rolling_chat.messages import Message, ToolCall
from rolling_chat.tools.memory_search import search_branch
from rolling_chat.tools.recall_hits import Hits

FILLER = [Message("user", f"We talked about the weather of day {number}.") for number in range(12)]


class Counter:
    def count_text(self, text: str) -> int:
        return count_tokens(text)

    def count_message(self, message: Message) -> int:
        return count_tokens(message.text)


def shown(branch: Sequence[Message], question: str, hidden: Sequence[int] = ()) -> list[str]:
    found = search_branch(branch, question, range(1, len(branch) + 1), 20, hidden=hidden)
    return Hits(branch, frozenset(hidden), Counter()).shown(found, 5)


ANSWERED = [
    *FILLER,
    Message("assistant", "Which instrument does Ines practice?"),
    Message("user", "The cello, twice a week."),
    *FILLER,
]


def test_a_short_hit_comes_with_the_message_before_and_after() -> None:
    first = shown(ANSWERED, "which instrument is practiced by Ines?")[0]
    assert first.startswith("r13 assistant, line 1 of 1\n  (r12 user: We talked")
    assert first.endswith("(r14 user: The cello, twice a week.)")


def test_what_is_shown_beside_another_hit_takes_no_place_of_its_own() -> None:
    entries = shown(ANSWERED, "Ines instrument cello")
    assert sum("The cello" in entry for entry in entries) == 1


def test_a_neighbor_that_may_not_be_read_is_not_shown() -> None:
    assert "cello" not in shown(ANSWERED, "which instrument is practiced by Ines?", hidden=[14])[0]


def test_a_result_is_shown_without_neighbors_and_a_call_of_recall_beside_nothing() -> None:
    asked = ToolCall("c1", "recall", '{"search": "cello"}')
    branch = [
        Message("user", "What does Ines practice?"),
        Message("assistant", "I look for Ines.", tool_calls=(asked,)),
        Message("tool", "Ines: cello", tool_call_id="c1", name="run_command"),
        *FILLER,
    ]
    assert "I look for" not in "".join(shown(branch, "practice Ines", hidden=[2]))
    assert next(one for one in shown(branch, "Ines cello") if one.startswith("r3")).count("\n") == 1


LINES = {
    "short": "the ferry number {} leaves at dawn",
    "unspaced": "渡し船は夜明けに出る {} " + "渡し船は夜明けに出る " * 30,
    "endless": "ferry {} " + "ferry " * 900,
}


@pytest.mark.parametrize("count", [1, 40, 2_000])
@pytest.mark.parametrize("kind", LINES)
def test_no_hit_is_longer_than_its_share_and_the_best_line_is_in_it(kind: str, count: int) -> None:
    long = "\n".join(LINES[kind].format(number) for number in range(count))
    branch = [
        *(Message("user", long) for _ in range(2)),
        Message("user", f"{long}\nThe Skagen ferry is painted green.\n{long}"),
        Message("assistant", long),
    ]
    entries = shown(branch, "What color is the Skagen ferry painted?")
    assert "Skagen ferry is painted green" in entries[0]
    assert all(count_tokens(entry) <= 400 for entry in entries)
