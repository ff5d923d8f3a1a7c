"""Implement plan mode for the offline model: describe the ordered steps, and carry them out when told to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rolling_chat.messages import Message
from rolling_chat.providers.offline.orders import Order, read_orders

_NOTE = re.compile(r"\n\n\[Plan mode(?P<over> is over)?[^\]]*\]\s*\Z")
_TASK_NOTE = re.compile(r"\n\n\[This is a task [^\]]*\]\s*\Z")
_GO = re.compile(r"\W*(?:carry out|do|execute|follow) (?:the|that|this|your) plan\W*", re.IGNORECASE)
_WORDS = {
    "list": "List the files in {path}.",
    "read": "Read {target}.",
    "search": "Search {path} for {target}.",
    "run": "Run `{target}`.",
    "edit": "In {path}, replace `{target}` with `{new}`.",
    "write": "Write {path}.",
    "move": "Move {path} to {new}.",
    "delete": "Delete {path}.",
    "fetch": "Fetch {target} .",
    "outline": "Look at the outline of {path}.",
    "todo": "Make a to-do list: {target}.",
    "task": "Give a task: {target}.",
}


def asks_for_plan(text: str) -> bool:
    """Return whether a user's message was sent in plan mode."""
    note = _NOTE.search(text)
    return note is not None and not note["over"]


def without_note(message: Message) -> Message:
    """Return a user's message without the program's notes about plan mode or a task."""
    if message.role != "user" or not isinstance(message.content, str):
        return message
    return replace(message, content=_TASK_NOTE.sub("", _NOTE.sub("", message.content)))


def orders_the_plan(text: str) -> bool:
    """Return whether a user's message orders the plan to be carried out."""
    return _GO.fullmatch(text) is not None


def planned_before(texts: Sequence[str]) -> list[tuple[Order, ...]]:
    """Return the steps most recently ordered in the user's earlier messages."""
    return next(filter(None, map(read_orders, reversed(texts))), [])


def describe_plan(steps: Sequence[tuple[Order, ...]]) -> str:
    """Format the steps as a numbered plan."""
    orders = [order for step in steps for order in step]
    lines = [
        f"{number}. {_WORDS[order.action].format(path=order.path, target=order.target, new=order.new)}"
        for number, order in enumerate(orders, start=1)
    ]
    return "\n".join(["Plan:", "", *lines, "", "Nothing was changed yet. Say “carry out the plan” to do it."])
