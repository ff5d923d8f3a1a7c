"""What is loaded is what was said, however much of it was shown before."""

from __future__ import annotations

import random

import pytest

from rolling_chat.messages import Message, ToolCall
from rolling_chat.tui.transcript.items import Item, Kind, Status, items_of
from rolling_chat.tui.transcript.listing import ItemList
from rolling_chat.tui.transcript.loading import LoadedItems


def _turn(number: int, chance: random.Random) -> list[Message]:
    said = Message("user", f"question {number}", id=f"u{number}")
    answer = Message("assistant", f"answer {number}", id=f"a{number}")
    if chance.random() < 0.5:
        return [said, answer]
    call = ToolCall(f"c{number}", "run", "{}")
    asked = Message("assistant", "", tool_calls=(call,), id=f"r{number}")
    result = Message("tool", f"result {number}", tool_call_id=call.id, id=f"t{number}")
    return [said, asked, result, answer]


def _turns(first: int, count: int, chance: random.Random) -> list[Message]:
    return [message for number in range(first, first + count) for message in _turn(number, chance)]


@pytest.mark.parametrize("seed", range(40))
def test_after_any_moves_the_items_are_those_of_the_branch(seed: int) -> None:
    chance = random.Random(seed)
    items = ItemList()
    loaded = LoadedItems(items)
    older, newest = _turns(0, 4, chance), _turns(4, 2, chance)
    branch = older + newest
    loaded.load(newest)
    loaded.prepend(older)
    assert list(items) == items_of(branch)
    for step in range(1, 8):
        if chance.random() < 0.5:  # what the screen itself adds stands below
            items.append(Item(f"n{step}", Kind.NOTICE, "said by the way"))
        if items and chance.random() < 0.3:
            items.put(items.ordinals[-1], Item(f"x{step}", Kind.ASSISTANT, "growing", Status.LIVE))
        branch = branch[: chance.randrange(len(branch) + 1)]
        if chance.random() < 0.7:
            branch = branch + _turns(100 * step, chance.randrange(4), chance)
        loaded.load(branch)
        assert list(items) == items_of(branch)


def test_of_turns_that_stay_nothing_is_made_again() -> None:
    items, chance = ItemList(), random.Random(1)
    loaded, branch = LoadedItems(items), _turns(0, 5, random.Random(1))
    loaded.load(branch)
    items.take_changes()
    before = list(items)
    loaded.load([*branch[: -len(_turn(4, chance))], Message("user", "another", id="u9")])
    changes = items.take_changes()
    kept = len(items) - 1
    assert not changes.is_new
    assert changes.cut == kept
    assert all(now is then for now, then in zip(items[:kept], before, strict=False))
