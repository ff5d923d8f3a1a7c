"""A branch as a model may see it, of which only what is new is looked at."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.request.inputs import SeenBranch
from rolling_chat.messages import MadeBy, Message, picture_part
from rolling_chat.providers import wire
from rolling_chat.snapshots import Snapshot

SYSTEM = Message("system", "You are a careful assistant.")
MODELS = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5")


def _message(number: int) -> Message:
    """Every third has something that one of the models made, every fourth a picture."""
    extras = {"thinking_blocks": [{"thinking": "hm"}]} if number % 3 == 0 else None
    content = (picture_part("data:,"),) if number % 4 == 0 else f"message {number}"
    return Message(
        "user" if number % 4 == 0 else "assistant",
        content,
        extras=extras,
        made_by=MadeBy("anthropic", MODELS[1]),
    )


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from(MODELS), st.booleans())))
def test_it_is_what_the_whole_branch_would_be_however_it_grows_or_goes_back(
    steps: list[tuple[int, int, str, bool]],
) -> None:
    seen, branch, number = SeenBranch(), [_message(0), _message(3)], 3
    kept: list[tuple[Sequence[Message], list[Message]]] = []
    for back, on, model, pictures in steps:
        del branch[max(0, len(branch) - back) :]
        for _ in range(on):
            number += 1
            branch.append(_message(number))
        expected = [SYSTEM, *wire.for_model(branch, model, pictures=pictures)]
        kept.append((seen.below(SYSTEM, branch, model, pictures=pictures), expected))
        # whoever got one may keep it
        assert all(list(shown) == was for shown, was in kept)


def test_older_messages_that_are_read_later_come_first() -> None:
    seen = SeenBranch()
    newest = [_message(1), _message(2)]
    seen.below(SYSTEM, newest, MODELS[0], pictures=True)
    older = Message("user", "before")
    shown = seen.below(SYSTEM, [older, *newest], MODELS[0], pictures=True)
    assert list(shown) == [SYSTEM, older, *newest]


def test_another_system_message_leaves_what_was_handed_out() -> None:
    seen, branch = SeenBranch(), [_message(1), _message(2)]
    first = seen.below(SYSTEM, branch, MODELS[0], pictures=True)
    other = Message("system", "You are brief.")
    assert list(seen.below(other, branch, MODELS[0], pictures=True)) == [other, *branch]
    assert list(first) == [SYSTEM, *branch]


def test_a_branch_that_grows_is_not_copied() -> None:
    seen, branch = SeenBranch(), [Message("user", "said")] * 50_000
    for _ in range(10):  # a list that grows makes room for more at once
        branch.append(Message("assistant", "more"))
        seen.below(SYSTEM, branch, MODELS[0], pictures=True)
    branch.append(Message("assistant", "more"))
    tracemalloc.start()
    try:
        grown = seen.below(SYSTEM, Snapshot(branch), MODELS[0], pictures=True)
        assert tracemalloc.get_traced_memory()[1] < len(branch)  # bytes: less than one for each
    finally:
        tracemalloc.stop()
    assert (grown[-1], len(grown)) == (branch[-1], 50_012)
