"""The list of items knows each by its index, reports what has changed, and loads what was said."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rolling_chat.messages import Message, ToolCall
from rolling_chat.tui.state.item_list import ItemList, LoadedItems
from rolling_chat.tui.state.items import Item, Kind, Status, items_of


def _item(name: str) -> Item:
    return Item(name, Kind.ASSISTANT, name)


def test_ordinals_stay_when_older_items_are_put_on_top() -> None:
    items = ItemList([_item("a"), _item("b")])
    items.prepend([_item("x"), _item("y")])
    assert items.ordinals == range(-2, 2)
    assert [items.at(at).id for at in items.ordinals] == ["x", "y", "a", "b"]
    assert [items.by_id.get(name) for name in ("x", "b", "none")] == [-2, 1, None]


def test_changes_are_told_once() -> None:
    items = ItemList([_item("a"), _item("b")])
    assert items.take_changes().is_new
    items.put(0, replace(items.at(0), source="other"))
    items.put(1, items.at(1))
    changes = items.take_changes()
    assert (changes.is_new, changes.cut, changes.changed) == (False, None, frozenset({0}))
    assert items.take_changes() is None


def test_what_was_popped_and_put_again_is_another() -> None:
    items = ItemList([_item("a"), _item("b")])
    items.take_changes()
    items.pop()
    items.append(_item("c"))
    assert items.take_changes().cut == 1
    assert items.by_id.get("b") is None


def test_text_that_grows_is_there_when_it_is_looked_at() -> None:
    items = ItemList([_item("a")])
    items.take_changes()
    for part in ("1", "2", "3"):
        items.grow(0, part)
    assert items[0].text == "a123"
    assert items.take_changes().changed == frozenset({0})


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
