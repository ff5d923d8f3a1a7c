"""The model's to-do lists, derived from its calls of the tool.

A list is not stored separately: it follows from the newest call on a branch, so that undoing the
conversation undoes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, Message, ToolCall
from rolling_chat.text import one_line

TODO = "todo"
"""The name of the tool."""

MAX_ITEMS = 50
_LONGEST = 200  # characters of an item


class TodoState(StrEnum):
    """The state of an item; the value is its mark."""

    PENDING = "[ ]"
    DOING = "[>]"
    DONE = "[x]"


_WORDS = {
    "pending": TodoState.PENDING, "todo": TodoState.PENDING, "open": TodoState.PENDING,
    "doing": TodoState.DOING, "in_progress": TodoState.DOING, "active": TodoState.DOING,
    "done": TodoState.DONE, "completed": TodoState.DONE, "complete": TodoState.DONE,
}  # fmt: skip
_MARKS = {
    "[ ]": TodoState.PENDING, "[]": TodoState.PENDING, "[>]": TodoState.DOING, "[~]": TodoState.DOING,
    "[-]": TodoState.DOING, "[x]": TodoState.DONE, "[✓]": TodoState.DONE, "[✔]": TodoState.DONE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TodoItem:
    """One item of a list, on one line."""

    text: str
    state: TodoState = TodoState.PENDING


@dataclass(frozen=True, slots=True)
class TodoList:
    """A list, in working order."""

    items: tuple[TodoItem, ...]

    @property
    def text(self) -> str:
        """The list as the model writes it, one item per line."""
        return "\n".join(f"{item.state} {item.text}" for item in self.items)

    @property
    def open_text(self) -> str:
        """The list of open items, with a count of the done ones at its end."""
        rest = TodoList(tuple(item for item in self.items if item.state is not TodoState.DONE))
        return f"{rest.text}\n{TodoState.DONE} {self.done} done".strip() if self.done else self.text

    @property
    def done(self) -> int:
        """The number of done items."""
        return sum(item.state is TodoState.DONE for item in self.items)

    @property
    def line(self) -> str:
        """The progress and the next item, on one line."""
        at = self.next_index
        return f"{self.done}/{len(self.items)} done" + (f": {self.items[at].text}" if at >= 0 else "")

    @property
    def is_done(self) -> bool:
        """Whether all items are done."""
        return self.done == len(self.items)

    @property
    def next_index(self) -> int:
        """The index of the item in progress, else of the first pending one; -1 if all are done."""
        states = [item.state for item in self.items]
        for wanted in (TodoState.DOING, TodoState.PENDING):
            if wanted in states:
                return states.index(wanted)
        return -1


def parse_items(value: Json) -> TodoList:
    """Read a list as models write it: marked texts, or objects with text and state. Raises ValueError."""
    if isinstance(value, str):
        value = [line for line in value.splitlines() if line.strip()]
    if not isinstance(value, Sequence):
        raise ValueError("must be a list of texts")
    if len(value) > MAX_ITEMS:
        raise ValueError(f"has {len(value)} items; {MAX_ITEMS} are the most")
    return TodoList(tuple(map(_item, value)))


def _item(value: Json) -> TodoItem:
    match value:
        case str():
            return _marked(value)
        case Mapping():
            text = next((value[key] for key in ("text", "content", "task", "title") if key in value), None)
            state = str(value.get("state", value.get("status", "pending"))).lower().replace(" ", "_")
            if isinstance(text, str) and text.strip() and (state in _WORDS or state in _MARKS):
                return TodoItem(one_line(text, _LONGEST), _WORDS.get(state) or _MARKS[state])
    raise ValueError("must be a list of texts such as '[ ] read the code'")


def _marked(text: str) -> TodoItem:
    line = one_line(text, 2 * _LONGEST).removeprefix("- ").removeprefix("* ")
    mark = line[: line.find("]") + 1].lower()
    state = _MARKS.get(mark)
    said = one_line(line[len(mark) :] if state else line, _LONGEST)
    if not said:
        raise ValueError("has an item without a text")
    return TodoItem(said, state or TodoState.PENDING)


def list_of_call(call: ToolCall) -> TodoList | None:
    """Return the list that a call sets; None if the call is of another tool or invalid."""
    if call.name != TODO:
        return None
    try:
        arguments = read_json(call.arguments)
        return parse_items(arguments["items"])
    except (ValueError, KeyError, TypeError):
        return None


def list_of(message: Message) -> TodoList | None:
    """Return the last list that a message of the model sets; None if it sets none."""
    lists: Iterable[TodoList | None] = map(list_of_call, reversed(message.tool_calls))
    return next((one for one in lists if one is not None), None)
