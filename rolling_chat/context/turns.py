"""Grouping messages into turns, and mending the pairs that a broken transcript tore apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rolling_chat.messages import JsonObject, Message

# What stands in for a result that a transcript never recorded.
MISSING_RESULT = "[no result was recorded]"
EMPTY_CONTENT = "[empty message]"

AnyMessage = TypeVar("AnyMessage", Message, JsonObject)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message on its way to a prompt; `index` is its place in the messages given, -1 if invented."""

    index: int
    message: Message
    repair: str = ""


def group_into_turns(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Cut `messages` into turns: a user message and all that follows it up to the next.

    System messages belong to no turn and are left out. What stands before the first user message
    is a turn of its own. Messages or dictionaries in, the same objects out. A user message sent
    while the agent worked (`"turn": "same"`) stays in the turn that runs.
    """
    turns: list[list[AnyMessage]] = []
    for message in messages:
        role = _role(message)
        if role == "system":
            continue
        if not turns or (role == "user" and not _same_turn(message)):
            turns.append([])
        turns[-1].append(message)
    return turns


def entry_turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The turns of `entries`, by the rule of `group_into_turns`."""
    turns: list[list[Entry]] = []
    for entry in entries:
        if not turns or (entry.message.role == "user" and not _same_turn(entry.message)):
            turns.append([])
        turns[-1].append(entry)
    return turns


def mend(messages: Sequence[Message], first_index: int = 0) -> tuple[list[Entry], list[int]]:
    """Make every call answered and every result an answer; nothing else is touched.

    Returns the entries, and the indexes of the messages that had to be left out: results that
    answer no call of the assistant message before them. A call without a result gets one that says
    so; an empty message gets a placeholder, for providers refuse empty content.
    """
    entries: list[Entry] = []
    left_out: list[int] = []
    open_calls: list[str] = []
    for offset, message in enumerate(messages):
        index = first_index + offset
        if message.role == "tool":
            if message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
                entries.append(_filled(index, message))
            else:
                left_out.append(index)
            continue
        entries.extend(map(_missing_result, open_calls))
        open_calls = [call.id for call in message.tool_calls]
        entries.append(_filled(index, message))
    entries.extend(map(_missing_result, open_calls))
    return entries, left_out


def _filled(index: int, message: Message) -> Entry:
    if message.content or message.tool_calls:
        return Entry(index, message)
    return Entry(index, replace(message, content=EMPTY_CONTENT, counts={}), "empty content")


def _missing_result(call_id: str) -> Entry:
    return Entry(-1, Message("tool", MISSING_RESULT, tool_call_id=call_id), "a call without a result")


def _role(message: Message | JsonObject) -> str:
    return message.role if isinstance(message, Message) else str(message.get("role", "user"))


def _same_turn(message: Message | JsonObject) -> bool:
    extras = message.extras if isinstance(message, Message) else message
    return bool(extras) and extras is not None and extras.get("turn") == "same"
