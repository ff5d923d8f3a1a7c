"""Below the hits of a search stands what was said last about the same thing, in whatever words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import count_tokens
from rolling_chat.messages import Message, ToolCall
from rolling_chat.tools import ToolContext
from rolling_chat.tools.recall import Recall
from tests.tools.test_recall import PlainMemory

FILLER = [Message("user", f"We talked about the weather of day {number}.") for number in range(40)]
STATED = Message("user", "The retry limit of amber-relay is 7.", id="stated")
CHANGED = Message(
    "user", "It rains. Make it five attempts for amber-relay, please. Lunch is late.", id="changed"
)
ASKED = Message("user", "What is it now?", id="asked")
HEADING = "[newest with 'amber-relay', newest first]"


def search(
    branch: Sequence[Message], words: str, excluded: frozenset[str] = frozenset(), cap: int = 8_000
) -> str:
    context = ToolContext(Path(), {}, PlainMemory(tuple(branch), cap, excluded))
    return asyncio.run(Recall().run({"search": words}, context)).text


def below(answer: str) -> list[str]:
    """The lines of the newest messages."""
    return answer.partition(HEADING)[2].strip().split("\n")[:-1]


def crowded(*last: Message) -> list[Message]:
    """So many messages in the words of a question that a change in other words is not among the hits."""
    others = (f"The relay {number} of amber has a retry limit that is fine." for number in range(30))
    limits = [Message("user", text) for text in others]
    return [STATED, *FILLER, *last, *FILLER, *limits, ASKED]


def test_what_was_changed_in_other_words_is_shown_below_the_hits() -> None:
    answer = search(crowded(CHANGED), "amber-relay retry limit")
    assert below(answer)[0] == "r42 user: Make it five attempts for amber-relay, please."


def test_the_newest_come_first_and_nothing_is_said_twice() -> None:
    last = [Message("assistant", f"Change {number} to amber-relay is noted.") for number in range(30)]
    answer = search(crowded(*last), "amber-relay retry limit")
    numbers = [int(line.split()[0][1:]) for line in below(answer)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 71 or "Change 29 to" in answer.partition(HEADING)[0]
    assert all(answer.count(line.split(": ")[1]) == 1 for line in below(answer))


def test_what_the_user_excluded_is_not_shown() -> None:
    assert "attempts" not in search(crowded(CHANGED), "amber-relay retry limit", frozenset({"changed"}))


def test_tools_are_no_mention() -> None:
    call = ToolCall("c1", "read_file", '{"path": "services/amber-relay/main.py"}')
    used = [Message("assistant", tool_calls=(call,)), Message("tool", "amber-relay", tool_call_id="c1")]
    assert HEADING not in search([STATED, CHANGED, *used, ASKED], "amber-relay retry limit")


def test_without_a_name_it_is_the_rarest_word() -> None:
    kettle = [Message("user", "Where is the kettle?"), Message("user", "Nora took that kettle home.")]
    answer = search(crowded(*kettle), "limit of the kettle")
    assert "Nora took that kettle home." in answer


def test_a_question_of_common_words_has_none() -> None:
    assert "newest first" not in search(crowded(CHANGED), "weather of the day")


@given(
    st.lists(st.text(alphabet="ab-. \n#7ß界", max_size=60), min_size=1, max_size=20), st.integers(200, 2_000)
)
def test_an_answer_never_exceeds_the_cap(texts: list[str], cap: int) -> None:
    branch = [*(Message("user", text or "x") for text in texts), *crowded(CHANGED)]
    assert count_tokens(search(branch, "a-b amber-relay retry ab7", cap=cap)) <= cap


def test_an_endless_message_is_shown_in_part() -> None:
    endless = Message("user", "amber-relay " + "and so on " * 200_000)
    assert all(len(line) < 400 for line in below(search(crowded(endless), "amber-relay retry limit")))
