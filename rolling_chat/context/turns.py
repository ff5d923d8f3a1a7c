"""Group messages into turns: a user message and everything up to the next user message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from rolling_chat.message_validation import normalize_role
from rolling_chat.messages import JsonObject, Message

TURN, SAME_TURN = "turn", "same"
"""The field and value that mark a message as sent into the running turn; they are never sent."""

AnyMessage = TypeVar("AnyMessage", Message, JsonObject)


def group_into_turns(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Split `messages` into turns: a user message and everything up to the next one.

    System messages belong to no turn and are left out. Messages before the first user message form a turn of
    their own. The returned objects are the given ones. A user message that was sent while the agent worked
    (`"turn": "same"`) stays in the running turn.
    """
    turns: list[list[AnyMessage]] = []
    for message in messages:
        role = role_of(message)
        if role == "system":
            continue
        if not turns or (role == "user" and not is_same_turn(message)):
            turns.append([])
        turns[-1].append(message)
    return turns


def opens_with_system(messages: Sequence[Message | JsonObject]) -> bool:
    """Return whether the first message is the system message."""
    return bool(messages) and role_of(messages[0]) == "system"


def opens_turn(messages: Sequence[Message | JsonObject], index: int) -> bool:
    """Return whether a turn begins at `index`.

    A message counts as a request if it is no answer, result or system message, and was not sent into a
    running turn."""
    message = messages[index]
    if role_of(message) in {"assistant", "tool"}:
        return False
    if index == 0:
        return not opens_with_system(messages)
    return not is_same_turn(message) or not _is_turn_running(messages, index)


def _is_turn_running(messages: Sequence[Message | JsonObject], index: int) -> bool:
    """Return whether a turn is running before `index`; results without a call do not count."""
    while index > 0 and role_of(messages[index - 1]) == "tool":
        index -= 1
    return index > 1 or (index == 1 and not opens_with_system(messages))


def role_of(message: Message | JsonObject) -> str:
    """Return the role of a message in either form; `user` for a dictionary without one."""
    return message.role if isinstance(message, Message) else normalize_role(message)


def is_same_turn(message: Message | JsonObject) -> bool:
    """Return whether a message was sent while the agent worked, and so belongs to that turn."""
    extras = message.extras if isinstance(message, Message) else message
    return bool(extras) and extras is not None and extras.get(TURN) == SAME_TURN
