"""A unified diff applied to a text, strictly: context and removed lines must be there, where it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file"


def patched(old: str, diff: str) -> str:
    """Return what the hunks of a diff make of `old`; lines end at line feeds alone."""
    lines, made, taken = _split(old), list[str](), 0
    body = diff.split("\n")
    while body and not body[0].startswith("@@ "):
        body.pop(0)
    while body:
        numbers = _HUNK.fullmatch(body.pop(0))
        assert numbers is not None
        first, count, _, count_after = (int(number) if number else 1 for number in numbers.groups())
        start = first - 1 if count else first
        assert start >= taken, "hunks overlap"
        made += lines[taken:start]
        old_part, new_part, body = _hunk(body)
        assert len(old_part) == count
        assert len(new_part) == count_after
        assert lines[start : start + count] == old_part, "the diff is of another text"
        made += new_part
        taken = start + count
    return "".join(made + lines[taken:])


def _hunk(body: list[str]) -> tuple[list[str], list[str], list[str]]:
    old: list[str] = []
    new: list[str] = []
    while body and not body[0].startswith("@@ "):
        line = body.pop(0)
        end = "\n"
        if body and body[0] == _NO_NEWLINE:
            body.pop(0)
            end = ""
        if line[0] in " -":
            old.append(line[1:] + end)
        if line[0] in " +":
            new.append(line[1:] + end)
        assert line[0] in " +-"
    return old, new, body


def _split(text: str) -> Sequence[str]:
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole
