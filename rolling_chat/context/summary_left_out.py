"""Rank the names, numbers and files of summarized messages that the summary does not mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.summary_grounding import Source, names_in, names_used, plain_name, specificity
from rolling_chat.context.summary_sections import FACTS, FILES, NO_HEADING, Worth, read_sections, shortened
from rolling_chat.context.summary_text import without_end_marker
from rolling_chat.messages import Message

MAX_LINES = 200
"""The most lines that are listed: the first in rank."""

_MAX_CHARS, _MAX_A_MESSAGE = 600_000, 30_000  # characters searched, newest messages first
_LINE = 160  # characters of a line
_MAX_NAMES = 2  # the most names that count for a line's rank
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")

# How likely a name is needed again, by role; names in results are listed only if they were used later.
_BY_ROLE = {"user": 3.0, "assistant": 1.0, "tool": 0.5}
_USED_LATER = 2.0


@dataclass(frozen=True, slots=True)
class LeftOutLine:
    """A line with names that the summary lacks; `index` is that of its message, such as 7 in `r7`."""

    index: int
    role: str
    line: str
    names: tuple[str, ...]
    message_id: str = ""


def left_out(
    summarized: Sequence[tuple[int, Message]], summary: str, later: Iterable[str] = ()
) -> list[LeftOutLine]:
    """Return the lines of summarized messages, given with their indexes, that have names `summary` lacks.

    Lines with names that the `later` texts use, lines by the user, and names that are hard to guess come
    first. Each name is listed only with its highest-ranking line.
    """
    said = Source(summary)
    newest = _newest(summarized)
    used = frozenset(map(plain_name, names_used("\n".join(text for _, _, text in newest), later)))
    found: list[tuple[float, LeftOutLine]] = []
    for index, message, text in newest:
        tools = {call.name for call in message.tool_calls}
        for sentence in _sentences(text):
            names = [
                name
                for name in names_in(sentence)
                if name not in tools
                and not said.has(name)
                and (message.role != "tool" or plain_name(name) in used)
            ]
            if names:
                line = shortened(sentence, _LINE, Worth(frozenset(map(plain_name, names))))
                left = LeftOutLine(index, message.role, line, (*names,), message.id)
                found.append((_rank(message.role, names, used), left))
    found.sort(key=lambda pair: (-pair[0], -pair[1].index))
    return list(_each_name_once(line for _, line in found))


def with_line(summary: str, line: LeftOutLine, cap: int, count: CountText) -> str:
    """Add a line to a summary, with its message's recall id, shortened if necessary.

    Return "" if it does not fit within `cap` tokens; no other line is removed for it.
    """
    sections = read_sections(summary)
    headed = any(heading for heading, _ in sections.all)
    heading = (
        NO_HEADING if not headed else FILES if line.role == "assistant" and _is_call(line.line) else FACTS
    )
    worth = Worth(frozenset(map(plain_name, line.names)))
    for limit in (_LINE, _LINE // 2):
        text = without_end_marker(f"{shortened(line.line, limit, worth)} (r{line.index})")
        longer = read_sections(summary)
        longer.lines.setdefault(heading, []).append(text)
        if count(longer.text) <= cap:
            return longer.text
    return ""


def _newest(summarized: Sequence[tuple[int, Message]]) -> list[tuple[int, Message, str]]:
    room, kept = _MAX_CHARS, list[tuple[int, Message, str]]()
    for index, message in reversed(summarized):
        if message.role == "system" or room <= 0:
            continue
        calls = (_call_line(call.name, call.arguments) for call in message.tool_calls)
        text = "\n".join((message.text[:_MAX_A_MESSAGE], *calls))
        room -= len(text)
        kept.append((index, message, text))
    kept.reverse()
    return kept


def _call_line(name: str, arguments: str) -> str:
    return f"called {name} {' '.join(arguments[: _LINE * 2].split())}"


def _is_call(line: str) -> bool:
    return line.startswith("called ")


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        if line := " ".join(sentence.split()):
            yield line


def _rank(role: str, names: Sequence[str], used: frozenset[str]) -> float:
    best = sorted(
        (specificity(name) * (_USED_LATER if plain_name(name) in used else 1.0) for name in names),
        reverse=True,
    )
    return _BY_ROLE.get(role, 1.0) * sum(best[:_MAX_NAMES])


def _each_name_once(lines: Iterable[LeftOutLine]) -> Iterator[LeftOutLine]:
    """Yield the lines with names that no earlier line has, up to the maximum."""
    seen, count = set[str](), 0
    for line in lines:
        new = tuple(name for name in line.names if plain_name(name) not in seen)
        if new:
            seen.update(map(plain_name, new))
            count += 1
            yield replace(line, names=new)
            if count == MAX_LINES:
                return
