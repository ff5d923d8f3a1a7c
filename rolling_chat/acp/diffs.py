"""Parse a unified diff into the form that clients need: the old and new text of each hunk."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGES = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_NONE = "/dev/null"
_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change of a file: its name, the texts, and the first line number in the new file, from 1.

    `old` is None for a created file, and `new` is empty for a deleted one.
    """

    name: str
    old: str | None
    new: str
    line: int


@dataclass(frozen=True, slots=True)
class ReadDiff:
    """The hunks of a diff, and the lines outside of hunks: a mode, line ends, a new name."""

    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]


def read_diff(diff: str) -> ReadDiff | None:
    """Parse a diff; return None if it was cut off, or is not a diff."""
    lines = _Lines(diff.split("\n"))
    hunks, notes = list[Hunk](), list[str]()
    before = after = ""
    while (line := lines.next()) is not None:
        if line.startswith("--- ") and (lines.peek() or "").startswith("+++ "):
            before, after = line[4:], (lines.next() or "")[4:]
        elif (ranges := _RANGES.fullmatch(line)) and after:
            hunk = _hunk(ranges, before, after, lines)
            if hunk is None:
                return None
            hunks.append(hunk)
        else:
            notes.append(line)
    return ReadDiff(tuple(hunks), tuple(notes)) if hunks else None


@dataclass(slots=True)
class _Lines:
    lines: list[str]
    at: int = 0

    def peek(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def next(self) -> str | None:
        line = self.peek()
        self.at += 1
        return line


def _hunk(ranges: re.Match[str], before: str, after: str, lines: _Lines) -> Hunk | None:
    """Read exactly as many lines as the header says, because file lines may look like headers."""
    wanted = {"-": _count(ranges[2]), "+": _count(ranges[4])}
    texts: dict[str, list[str]] = {"-": [], "+": []}
    while any(wanted[sign] > len(texts[sign]) for sign in wanted):
        line = lines.next()
        if line is None or line[:1] not in ("-", "+", " "):
            return None
        signs = "-+" if line.startswith(" ") else line[0]
        is_last = lines.peek() == _NO_NEWLINE
        if is_last:
            lines.next()
        for sign in signs:
            texts[sign].append(line[1:] + ("" if is_last else "\n"))
    if any(wanted[sign] != len(texts[sign]) for sign in wanted):
        return None
    old, new = ("".join(texts[sign]) for sign in wanted)
    name = (before if after == _NONE else after).partition("/")[2]
    return Hunk(name, None if before == _NONE else old, new, max(1, int(ranges[3])))


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)
