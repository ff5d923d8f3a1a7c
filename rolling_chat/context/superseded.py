"""Find results that later calls have superseded: they are masked first, however new they are.

Each rule is one function, with its reason in the report. A superseded result can still be recalled by its id.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rolling_chat.context.tool_uses import Effect, ToolUse

Rule: TypeAlias = Callable[[Sequence[ToolUse]], Iterator[int]]

# Commands that may change which files a folder contains; their other effects do not matter here.
_CHANGES_FOLDERS = re.compile(
    r"(?:^|[\s;&|(])(?:rm|mv|cp|mkdir|rmdir|touch|ln|unzip|tar|git (?:checkout|switch|pull|merge|rebase|reset"
    r"|stash|clean|clone|mv|rm))(?=\s)"
)
_WORDS = re.compile(r"[^\s'\"=;|&<>()]+")
_SEGMENTS = re.compile(r"&&|\|\||[;\n]")


def superseded(uses: Sequence[ToolUse]) -> dict[int, str]:
    """Return the indexes of superseded results, each with the reason of the first rule that applies."""
    found: dict[int, str] = {}
    for rule, reason in RULES.items():
        for index in rule(uses):
            found.setdefault(index, reason)
    return found


def read_again(uses: Sequence[ToolUse]) -> Iterator[int]:
    """Yield reads whose lines were all read again later."""
    newer: dict[str, list[tuple[int, int]]] = {}
    same: set[tuple[str, tuple[int, int]]] = set()
    for use in _newest_first(uses, Effect.READ):
        for path in use.paths:
            spans = newer.setdefault(path, [])
            if (path, use.lines) in same or _is_within(use.lines, spans):
                yield use.index
            same.add((path, use.lines))
            if not use.is_cut:  # it is unknown which lines a cut result contains
                _merge(use.lines, spans)


def written_later(uses: Sequence[ToolUse]) -> Iterator[int]:
    """Yield reads of files that were later written, moved or deleted."""
    changed: set[str] = set()
    for use in reversed(uses):
        if use.changes_files:
            changed.update(use.paths)
        elif use.effect is Effect.READ and not changed.isdisjoint(use.paths):
            yield use.index


def run_again(uses: Sequence[ToolUse]) -> Iterator[int]:
    """Yield results of calls that were repeated word for word.

    Calls without arguments are excluded: each may return something else, such as the next page.
    """
    seen: set[tuple[str, str]] = set()
    for use in reversed(uses):
        if use.effect is Effect.READ or use.changes_files or not use.subject:
            continue
        if (use.tool, use.subject) in seen:
            yield use.index
        elif not use.failed or use.effect is Effect.RUN:
            seen.add((use.tool, use.subject))


def listing_outdated(uses: Sequence[ToolUse]) -> Iterator[int]:
    """Yield listings of folders in which files were later created, moved or deleted."""
    exists: dict[str, dict[str, bool]] = {}  # whether a name exists now, by folder
    commands: set[str] = set()
    for use in reversed(uses):
        if use.replaces_files:
            for place, path in enumerate(use.paths):
                folder, name = posixpath.split(path)
                is_there = use.effect is Effect.WRITE or (use.effect is Effect.MOVE and place > 0)
                exists.setdefault(folder or ".", {}).setdefault(name, is_there)
        elif use.effect is Effect.RUN and _CHANGES_FOLDERS.search(use.subject):
            commands.update(map(posixpath.normpath, _WORDS.findall(use.subject)))
        elif use.effect is Effect.LIST and not use.failed:
            names = exists.get(use.paths[0], {})
            if commands.intersection(_entries(use)) or any(
                (name in use.text) != is_there for name, is_there in names.items()
            ):
                yield use.index


def error_resolved(uses: Sequence[ToolUse]) -> Iterator[int]:
    """Yield errors of calls that later succeeded: the same tool for the same file, or the same program."""
    succeeded: set[tuple[str, str]] = set()
    for use in reversed(uses):
        for subject in _attempted(use):
            if not use.failed:
                succeeded.add((use.tool, subject))
            elif (use.tool, subject) in succeeded:
                yield use.index
                break


RULES: Mapping[Rule, str] = {
    read_again: "superseded: the file was read again",
    written_later: "superseded: the file was changed later",
    run_again: "superseded: same command run again",
    listing_outdated: "superseded: the folder was changed later",
    error_resolved: "superseded: it worked later",
}


def reads_of_edited_files(uses: Sequence[ToolUse], since_turn: int) -> set[int]:
    """Return the indexes of the newest reads of files that were changed in `since_turn` or later.

    A read counts until the whole file is written: after an edit, the read still describes the file.
    """
    edited = {path for use in uses if use.changes_files and use.turn >= since_turn for path in use.paths}
    newest: dict[str, int] = {}
    for use in uses:
        for path in use.paths:
            if use.effect is Effect.READ and not use.failed and path in edited:
                newest[path] = use.index
            elif use.replaces_files:
                newest.pop(path, None)
    return set(newest.values())


def _newest_first(uses: Sequence[ToolUse], effect: Effect) -> Iterator[ToolUse]:
    return (use for use in reversed(uses) if use.effect is effect and not use.failed)


def _is_within(lines: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether every line is in one of the spans, which are disjoint and sorted."""
    at = bisect_right(spans, lines[0], key=lambda span: span[0]) - 1
    return at >= 0 and lines[1] <= spans[at][1]


def _merge(lines: tuple[int, int], spans: list[tuple[int, int]]) -> None:
    """Add lines to disjoint, sorted spans; merge them with the spans that they touch."""
    first, last = lines
    start = bisect_left(spans, first - 1, key=lambda span: span[1])
    stop = start
    while stop < len(spans) and spans[stop][0] <= last + 1:
        first, last = min(first, spans[stop][0]), max(last, spans[stop][1])
        stop += 1
    spans[start:stop] = [(first, last)]


def _entries(use: ToolUse) -> Iterator[str]:
    folder = use.paths[0]
    yield folder
    for name in use.text.splitlines():
        yield posixpath.normpath(posixpath.join(folder, name.strip()))


def _attempted(use: ToolUse) -> Iterator[str]:
    """Yield what a call attempted: its files, or the program that it ran, with its first argument."""
    yield from use.paths
    if use.effect is Effect.RUN:
        for segment in _SEGMENTS.split(use.subject):
            words = [word for word in segment.split() if not word.startswith("-")][:2]
            if words and words[0] != "cd":
                yield " ".join(words)
