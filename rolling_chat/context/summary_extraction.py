"""Summarize by rule: free, deterministic, word for word from the messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rolling_chat.context.count_memo import CountText
from rolling_chat.messages import Message

ASKED, ANSWERED, FILES, ERRORS = "Asked:", "Answered:", "Files:", "Errors:"
_HEADS = (ASKED, ANSWERED, FILES, ERRORS)

# What one line of the summary keeps of a message, in characters, and of an error.
_ASKED, _ANSWERED, _ERROR = 300, 400, 200
_SHORTER = 80
_MAX_ERRORS = 12
_MAX_LINE = 2_000

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_ERROR_LINE = re.compile(r"\b(?:\w*(?:Error|Exception)|error|failed|fatal|panic)\b\s*[:(\[]")
_PATH_KEYS = ("path", "file", "file_path", "filename")


@dataclass(frozen=True, slots=True)
class _Notes:
    """Lines by their head, oldest first."""

    lines: dict[str, list[str]]

    def add(self, head: str, line: str) -> None:
        lines = self.lines[head]
        if line and line not in lines:
            lines.append(line)


def extract(messages: Iterable[Message], previous: str, cap: int, count: CountText) -> str:
    """Extract the requests, answers, files and errors of `messages`, after those in `previous`.

    At most `cap` tokens by `count`. Where that is too little, long lines are shortened, the oldest
    first, then answers are dropped, then the oldest of all.
    """
    notes = _read(previous)
    for message in messages:
        _take(notes, message)
    return _fit(notes, cap, count)


def _read(previous: str) -> _Notes:
    """The lines of an earlier extraction; what any other summary says counts as answered."""
    notes, head = _Notes({head: [] for head in _HEADS}), ANSWERED
    for line in previous.splitlines():
        if line.strip() in _HEADS:
            head = line.strip()
        else:
            notes.add(head, line.strip().removeprefix("- "))
    return notes


def _take(notes: _Notes, message: Message) -> None:
    match message.role:
        case "user":
            notes.add(ASKED, _first(message.text, _ASKED))
        case "assistant":
            for path in _paths(message):
                notes.add(FILES, path)
            if not message.tool_calls:
                notes.add(ANSWERED, _first(message.text, _ANSWERED))
        case "tool":
            for line in _errors(message.text):
                notes.add(ERRORS, line)
        case _:
            pass


def _first(text: str, limit: int) -> str:
    """The first sentences of `text` that `limit` characters hold, on one line."""
    sentences, kept = _SENTENCE_END.split(text[: limit * 4].strip()), ""
    for sentence in sentences:
        longer = f"{kept} {sentence.strip()}".strip()
        if len(longer) > limit:
            break
        kept = longer
    return kept or _cut(" ".join(text[:limit].split()), limit)


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _paths(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            continue
        if isinstance(arguments, dict):
            found = (arguments.get(key) for key in _PATH_KEYS)
            path = next((value for value in found if isinstance(value, str) and value), "")
            if path:
                yield f"{_cut(path, 200)} ({call.name})"


def _errors(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text.splitlines() if len(line) <= _MAX_LINE)
    yield from (_cut(line, _ERROR) for line in lines if _ERROR_LINE.search(line))


def _fit(notes: _Notes, cap: int, count: CountText) -> str:
    notes.lines[ERRORS][:-_MAX_ERRORS] = []
    text = _written(notes)
    for head in (ERRORS, ANSWERED, ASKED):
        for position, line in enumerate(notes.lines[head]):
            if count(text) <= cap:
                return text
            notes.lines[head][position] = _cut(line, _SHORTER)
            text = _written(notes)
    for head in (ERRORS, ANSWERED, FILES, ASKED):
        while notes.lines[head] and count(text) > cap:
            del notes.lines[head][0]
            text = _written(notes)
    return text if count(text) <= cap else ""


def _written(notes: _Notes) -> str:
    sections: Sequence[str] = [
        "\n".join((head, *(f"- {line}" for line in notes.lines[head])))
        for head in _HEADS
        if notes.lines[head]
    ]
    return "\n".join(sections)
