"""The list of items knows each by its ordinal, and tells what has changed."""

from __future__ import annotations

from dataclasses import replace

from rolling_chat.tui.transcript.items import Item, Kind
from rolling_chat.tui.transcript.listing import ItemList


def _item(name: str) -> Item:
    return Item(name, Kind.ASSISTANT, name)


def test_ordinals_stay_when_older_items_are_put_on_top() -> None:
    items = ItemList([_item("a"), _item("b")])
    items.prepend([_item("x"), _item("y")])
    assert items.ordinals == range(-2, 2)
    assert [items.at(at).id for at in items.ordinals] == ["x", "y", "a", "b"]
    assert [items.ordinal(name) for name in ("x", "b", "none")] == [-2, 1, None]


def test_changes_are_told_once() -> None:
    items = ItemList([_item("a"), _item("b")])
    assert items.take_changes().is_new
    items.put(0, replace(items.at(0), text="other"))
    items.put(1, items.at(1))
    changes = items.take_changes()
    assert (changes.is_new, changes.cut, changes.changed) == (False, None, frozenset({0}))
    assert not items.take_changes().changed


def test_what_was_popped_and_put_again_is_another() -> None:
    items = ItemList([_item("a"), _item("b")])
    items.take_changes()
    items.pop()
    items.append(_item("c"))
    assert items.take_changes().cut == 1
    assert items.ordinal("b") is None


def test_text_that_grows_is_there_when_it_is_looked_at() -> None:
    items = ItemList([_item("a")])
    items.take_changes()
    for part in ("1", "2", "3"):
        items.grow(0, part)
    assert items[0].text == "a123"
    assert items.take_changes().changed == frozenset({0})
