"""Layer 3c: the iterations of a turn, whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rolling_chat.messages import Message

Item = TypeVar("Item")


def split_iterations(turn: Sequence[Item], message_of: Callable[[Item], Message]) -> list[list[Item]]:
    """The iterations of `turn`, oldest first: each call with all of its results.

    User messages and answers without calls belong to none and are left out.
    """
    found: list[list[Item]] = []
    inside = False
    for item in turn:
        message = message_of(item)
        if message.tool_calls:
            found.append([item])
            inside = True
        elif message.role == "tool" and inside:
            found[-1].append(item)
        else:
            inside = False
    return found
