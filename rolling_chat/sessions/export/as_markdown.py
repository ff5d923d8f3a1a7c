"""A session as Markdown, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from rolling_chat.messages import SHOWN, Ending, Message, ToolCall, is_picture, picture_address
from rolling_chat.pictures import header_of
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.sessions.values import REASONING
from rolling_chat.task_record import record_in
from rolling_chat.text import one_line, without_controls

ENDINGS = {
    Ending.COMPLETE: "",
    Ending.LENGTH: "cut at the output limit",
    Ending.CANCELLED: "cut off before its end",
    Ending.FAILED: "failed",
    Ending.REFUSED: "refused: no leave was given",
}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def to_markdown(info: SessionInfo, messages: Sequence[Message]) -> str:
    """Write the whole of `messages` as Markdown, ending with a newline.

    Control characters are shown as pictures: the document may be printed to a terminal as it is.
    """
    blocks = [f"# {_escaped(info.title) or 'Untitled session'}", _facts(info, len(messages))]
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        blocks.extend(_message(message, names.get(message.tool_call_id or "", "")))
    return "\n\n".join(block for block in blocks if block) + "\n"


def fence(text: str, language: str = "") -> str:
    """Return `text` as a code block whose fence is longer than any run of backticks in it."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{ticks}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{ticks}"


def facts_of(info: SessionInfo, count: int) -> dict[str, str]:
    """Return a session's facts as lines of Markdown: model, folder, dates, `count` messages."""
    return {
        "session": info.id,
        "folder": info.folder,
        "model": info.model,
        "begun": _time(info.created_at),
        "last used": _time(info.updated_at),
        "messages": str(count),
        "forked from": info.parent,
    }


def _facts(info: SessionInfo, count: int) -> str:
    foreign = ("session", "folder", "model", "forked from")
    return "\n".join(
        f"- {name}: {_code(value) if name in foreign else value}"
        for name, value in facts_of(info, count).items()
        if value
    )


def _message(message: Message, called: str) -> Iterator[str]:
    yield f"## {heading_of(message, called, _code)}"
    thinking = (message.extras or {}).get(REASONING)
    if isinstance(thinking, str) and thinking.strip():
        yield "\n".join(
            f"> {line}".rstrip() for line in ("*thinking*", "", *without_controls(thinking).splitlines())
        )
    text = without_controls(content_of(message))
    yield fence(text) if message.role == "tool" else _closed(text.strip("\n"))
    for call in message.tool_calls:
        yield f"**calls** {_code(call.name)}{' as text' if message.writes_calls else ''}"
        yield fence(*shown_arguments(call))
    if in_task := said_in_task(message):
        yield "*what was said in the task*"
        yield fence(in_task)
    ending = ENDINGS[message.ending]
    if ending:
        yield f"*({ending})*"


def said_in_task(message: Message) -> str:
    """Return the conversation, in short, of the task whose result a message is; empty for any other."""
    said = (message.extras or {}).get(SHOWN) if record_in(message) is not None else ""
    return without_controls(said) if isinstance(said, str) else ""


def heading_of(message: Message, called: str, mark: Callable[[str], str] = one_line) -> str:
    """Return a message's heading: its speaker (for a result, the tool `called`) and its time."""
    name = called or message.name or ""
    role: str = message.role  # what was imported may have any
    match role:
        case "user":
            who = "You"
        case "assistant":
            who = f"Assistant {mark(message.made_by.model)}" if message.made_by else "Assistant"
        case "tool":
            who = f"Result of {mark(name)}" if name else "Result"
        case "system":
            who = "System"
        case _:
            who = f"Role {mark(role)}"
    at = _time(message.created_at)
    return f"{who} · {at}" if at else who


def content_of(message: Message) -> str:
    """Return the text of a message; what is not text is named in brackets."""
    if isinstance(message.content, str):
        return message.prose
    shown = []
    for part in message.content:
        if is_picture(part):
            header = header_of(picture_address(part))
            shown.append(f"[picture: {header.kind}, {header.pixels}]" if header is not None else "[picture]")
            continue
        text = part.get("text")
        shown.append(text if isinstance(text, str) else f"[{one_line(str(part.get('type', 'part')), 40)}]")
    return "\n\n".join(shown)


def shown_arguments(call: ToolCall) -> tuple[str, str]:
    """Return the arguments as people read them, and their language."""
    try:
        data = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return without_controls(call.arguments), ""
    return without_controls(json.dumps(data, indent=2, ensure_ascii=False)), "json"


def _closed(text: str) -> str:
    """Return `text` with its last code block closed: a reply cut off in one would swallow what follows."""
    opened = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if not match:
            continue
        marks, rest = match[1], match[2]
        if not opened:
            opened = "" if marks[0] == "`" and "`" in rest else marks
        elif marks[0] == opened[0] and len(marks) >= len(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _code(text: str) -> str:
    """Return `text` as a code span that survives backticks in it."""
    plain = one_line(text, 300)
    if not plain:
        return ""
    ticks = "`" * (1 + max(map(len, re.findall(r"`+", plain)), default=0))
    gap = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{ticks}{gap}{plain}{gap}{ticks}"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", one_line(text, 300))


def _time(seconds: float) -> str:
    if seconds <= 0:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return ""
