"""A message as text and as numbered lines: its content, then its tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Content, JsonObject, Message, ToolCall
from rolling_chat.text import one_line

RECALL = "recall"
"""The name of the tool that reads the conversation back."""

ROOM_MARK = "[room: "
"""The beginning of the line, at the end of a message or result, that tells the model the room left."""

LONGEST_LINE = 500  # characters; longer lines are broken up, so that every part of a text can be requested

_ROOM_LINE = re.compile(rf"\n*^{re.escape(ROOM_MARK)}about [^\]\n]*\]$", re.MULTILINE)


def speaker_of(message: Message) -> str:
    """Return who wrote a message: `user`, `assistant calling read_file`, `result of read_file`."""
    if message.role == "tool":
        return f"result of {one_line(message.name or 'a tool', 60)}"
    if message.tool_calls:
        names = ", ".join(dict.fromkeys(one_line(call.name, 60) for call in message.tool_calls))
        return f"{message.role} calling {names}"
    return message.role


def without_room_line(text: str) -> str:
    """Return the text of a message without the line about the room left."""
    return _ROOM_LINE.sub("", text) if ROOM_MARK in text else text


def without_recall(message: Message) -> Message:
    """Return the message without calls of `recall`: a search must not find the words of earlier searches."""
    if all(call.name != RECALL for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(call for call in message.tool_calls if call.name != RECALL))


def piece_text(message: Message) -> str:
    """Return all text of a message: its content, then its tool calls with their arguments.

    Multiline arguments keep their lines; images and other parts are named.
    """
    parts = [*_content(message.content), *(_call(call) for call in message.tool_calls)]
    return "\n".join(part for part in parts if part)


def piece_lines(message: Message) -> list[str]:
    """Return `piece_text` by lines; one longer than LONGEST_LINE characters is broken into several."""
    text = piece_text(message)
    lines = text.split("\n")
    if "\r" not in text and max(map(len, lines)) <= LONGEST_LINE:
        return lines
    return list(_folded(lines))


def _folded(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        kept = line.removesuffix("\r")
        yield kept[:LONGEST_LINE]
        for start in range(LONGEST_LINE, len(kept), LONGEST_LINE):
            yield kept[start : start + LONGEST_LINE]


def _content(content: Content) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for part in content:
        text = part.get("text")
        yield text if part.get("type") == "text" and isinstance(text, str) else _no_text(part)


def _no_text(part: JsonObject) -> str:
    kind = str(part.get("type") or "part").removesuffix("_url")
    size = len(json.dumps(part, default=str))
    return f"[{kind}, {size:,} bytes as sent: no text that could be shown here]"


def _call(call: ToolCall) -> str:
    head = f"[call of {call.name}]"
    try:
        arguments = read_json(call.arguments)
    except ValueError:
        return f"{head}\n{call.arguments}"
    if not isinstance(arguments, dict):
        return f"{head}\n{call.arguments}"
    return "\n".join([head, *(_argument(str(name), value) for name, value in arguments.items())])


def _argument(name: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"
