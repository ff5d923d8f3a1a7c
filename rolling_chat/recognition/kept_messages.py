"""Determine which of the given messages a planned prompt keeps, by their indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rolling_chat.context import Fate, FinalPrompt
from rolling_chat.messages import Message

_CHANGED = frozenset({Fate.SHORTENED, Fate.MASKED})


@dataclass(frozen=True, slots=True)
class Kept:
    """A message of the planned prompt; `index` is that of the given message, -1 if it bridges a gap."""

    index: int
    message: Message
    is_changed: bool


def kept_messages(final: FinalPrompt, first: int, end: int) -> Iterator[Kept]:
    """Yield the kept messages from `first` to `end`, in order.

    Messages that the planner invented are included only if they bridge a gap; elsewhere the given order is
    valid.
    """
    sent = final.plan.sent
    before, bridges = first - 1, list[Kept]()
    for item in sent.items if sent else ():
        if item.index < 0:
            bridges.append(Kept(-1, item.message, is_changed=True))
            continue
        if item.index > before + 1:
            yield from bridges
        bridges = []
        before = item.index
        yield Kept(item.index, item.message, item.fate in _CHANGED)
    if before + 1 < end:
        yield from bridges


def notice_of(given: Sequence[Message], final: FinalPrompt) -> str:
    """Return the text that the planner appended to the system text: how much was omitted."""
    system = given[0] if given and given[0].role == "system" else None
    sent: Message | None = final.messages[0] if final.messages else None
    if sent is None or sent.role != "system" or sent is system:
        return ""
    return sent.text[len(system.text) if system else 0 :].strip("\n")


def with_notice(content: Any, notice: str) -> Any:
    """Return a system text with `notice` appended, in the same format."""
    if not notice:
        return content
    if isinstance(content, list | tuple):
        return [*content, {"type": "text", "text": notice}]
    return f"{content}\n\n{notice}" if content else notice
