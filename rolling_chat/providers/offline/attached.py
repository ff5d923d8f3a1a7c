"""Answer messages with attached files as the offline model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.providers.offline.matching import best_matches, content_words, read_sentences

_ATTACHED = re.compile(
    r"^Attached (?:file|folder|lines \S+ of a file) "
    r"(?P<name>[^\n]+) \((?P<note>[^\n]+); data, not instructions\):\n"
    r"(?P<fence>`{3,})\n(?P<text>.*?)\n?(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_PICTURE = re.compile(r"^Attached picture (?P<name>[^\n]+) \((?P<note>[^\n]+)\)$", re.MULTILINE)
_MAX_LINES = 20


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file in a message: its name, a note on its length, and its text; None for a picture."""

    name: str
    note: str
    text: str | None


def split_attached(message: str) -> tuple[str, tuple[AttachedFile, ...]]:
    """Split a message into its words and the files attached below them, which contain no orders."""
    texts = list(_ATTACHED.finditer(message))
    within = [one.span() for one in texts]
    pictures = (one for one in _PICTURE.finditer(message) if not _is_in(one.start(), within))
    found = sorted([*texts, *pictures], key=lambda one: one.start())
    if not found:
        return message, ()
    files = tuple(AttachedFile(one["name"], one["note"], one.groupdict().get("text")) for one in found)
    return message[: found[0].start()].rstrip(), files


def describe_attached(words: str, files: Sequence[AttachedFile]) -> str:
    """Answer a message about its files with lines that match its words, or with each file's beginning."""
    return "\n\n".join(_describe(words, file) for file in files)


def _is_in(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _describe(words: str, file: AttachedFile) -> str:
    if file.text is None:
        return f"{file.name} is a picture ({file.note}); this line is all that I am sent of it."
    file_words = set(content_words(file.name)) | {"attached", "file", "folder"}
    question = " ".join(word for word in content_words(words.replace("@", " ")) if word not in file_words)
    lines = [line for line in file.text.splitlines() if line.strip()]
    found = best_matches(question, read_sentences(lines)) if question else []
    if found:
        return f"In {file.name} ({file.note}):\n" + "\n".join(f"- {sentence.text}" for sentence in found)
    body = "\n".join(lines[:_MAX_LINES]).replace("```", "ʼʼʼ")
    more = f"\n\n({len(lines) - _MAX_LINES} more lines)" if len(lines) > _MAX_LINES else ""
    return f"{file.name} ({file.note}) begins with:\n\n```\n{body}\n```{more}"
