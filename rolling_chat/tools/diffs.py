"""Format changes to files as a complete unified diff, for the permission question and the transcript."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rolling_chat.figures import plural
from rolling_chat.tools.base import ToolError
from rolling_chat.tools.decoding import show_name
from rolling_chat.tools.file_changes import FileChange, FileVersion
from rolling_chat.tools.file_text import FileText, read_file_text

MAX_DIFF = 200_000
"""The maximum characters of a diff; a change that cannot be shown is not made."""

_CONTEXT = 3  # lines around a change
_MAX_COMPARED = 4_000_000  # pairs of lines; beyond that, everything is shown as replaced
_HUNK = re.compile(r"([-+])(\d+)(,\d+)?(?= )")
_NO_NEWLINE = "\\ No newline at end of file"


def diff_of(changes: Sequence[FileChange], folder: Path) -> str:
    """Return the changes as one unified diff, with paths relative to `folder`.

    It shows every byte that changes: changes of encoding or line ends have a line of their own, and if line
    ends are mixed, lines that end in CR LF show the CR. Raises ToolError for a diff of more than MAX_DIFF
    characters, except that deleted files are then only described.
    """
    lines: Iterable[str] = (line for change in changes for line in _lines(change, folder))
    if (move := _move(changes)) is not None:
        lines = _move_lines(*move, folder)
    diff = "\n".join(lines)
    if len(diff) <= MAX_DIFF:
        return diff
    if all(change.after is None for change in changes):
        return "\n".join(line for change in changes for line in _deletion(change, folder))
    raise ToolError(
        f"The diff has {len(diff):,} characters, too many to show: make it in parts of at most {MAX_DIFF:,}."
    )


def count_of(changes: Sequence[FileChange]) -> str:
    """Return the size of the changes in lines: `+12 -3`; empty for a file that only moves."""
    if _move(changes) is not None:
        return ""
    added = removed = 0
    for change in changes:
        for line in _hunks(change):
            added += line.startswith("+")
            removed += line.startswith("-")
    return f"+{added:,} -{removed:,}"


def _move(changes: Sequence[FileChange]) -> tuple[FileChange, FileChange] | None:
    """Return the deletion and the creation that together only move a file; None for any other changes."""
    match changes:
        case [created, deleted] if created.before is None and deleted.after is None:
            if created.after is None or deleted.before is None:
                return None
            is_same = replace(created.after, mode=None) == replace(deleted.before, mode=None)
            return (deleted, created) if is_same else None
        case _:
            return None


def _move_lines(source: FileChange, target: FileChange, folder: Path) -> Iterator[str]:
    yield f"rename from {_name(source, folder)}"
    yield f"rename to {_name(target, folder)}"
    yield from _mode_lines(source.before, target.after)


def _deletion(change: FileChange, folder: Path) -> Iterator[str]:
    """Describe the deletion of a file that is too long to be shown."""
    yield f"--- a/{_name(change, folder)}"
    yield "+++ /dev/null"
    if change.before is not None:
        lines = plural(change.before.data.count(b"\n"), "line")
        yield f"a file of {lines}, {plural(len(change.before.data), 'byte')}: too long to be shown"


def _name(change: FileChange, folder: Path) -> str:
    return show_name(change.path.relative_to(folder))


def _mode_lines(before: FileVersion | None, after: FileVersion | None) -> Iterator[str]:
    if before is None or after is None or before.mode is None or after.mode is None:
        return
    if before.mode != after.mode:
        yield f"mode {before.mode:o} becomes {after.mode:o}"


def _lines(change: FileChange, folder: Path) -> Iterator[str]:
    name = _name(change, folder)
    yield f"--- {'/dev/null' if change.before is None else f'a/{name}'}"
    yield f"+++ {'/dev/null' if change.after is None else f'b/{name}'}"
    yield from _format_lines(change)
    yield from _hunks(change)


def _format_lines(change: FileChange) -> Iterator[str]:
    """Yield lines about the parts of a change that its diff cannot show."""
    before, after = change.before, change.after
    if before is None or after is None:
        yield from () if (before or after) is None else _kind(before or after)
        return
    yield from _mode_lines(before, after)
    old, new = _format(before), _format(after)
    if old != new:
        yield f"{old} becomes {new}"


def _kind(version: FileVersion | None) -> Iterator[str]:
    if version is None:
        return
    if version.is_link:
        yield "a symbolic link"
    elif version.data and not _is_text(version):
        yield f"a binary file of {plural(len(version.data), 'byte')}"
    elif not version.data:
        yield "an empty file"
    elif (form := _format(version)) not in {"UTF-8", "UTF-8 LF"}:
        yield form


def _format(version: FileVersion) -> str:
    if version.is_link:
        return "a symbolic link"
    if not _is_text(version):
        return f"a binary file of {plural(len(version.data), 'byte')}"
    text = read_file_text(version.data, "")
    mark = "with a byte order mark" * bool(text.mark)
    return " ".join(filter(None, (text.encoding.upper(), mark, text.line_ends)))


def _hunks(change: FileChange) -> Iterator[str]:
    old, new = _text(change.before), _text(change.after)
    if old is None or new is None:
        return
    kinds = {file.line_ends for file in (old, new)} - {""}
    shows_returns = len(kinds) > 1 or "mixed line ends" in kinds
    texts = (file.as_in_file if shows_returns else file.text for file in (old, new))
    yield from _marked(_unified(*map(_split, texts)))


def _marked(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line.removesuffix("\n")
        if not line.startswith("@@") and not line.endswith("\n"):
            yield _NO_NEWLINE


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield the hunks of a diff; difflib gets only the lines from the first to the last difference."""
    first = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    rest = min(len(old), len(new)) - first
    last = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    start = max(0, first - _CONTEXT)
    ends = len(old) - max(0, last - _CONTEXT), len(new) - max(0, last - _CONTEXT)
    middle = old[start : ends[0]], new[start : ends[1]]
    if len(middle[0]) * len(middle[1]) > _MAX_COMPARED:
        yield f"@@ -{start + 1},{len(middle[0])} +{start + 1},{len(middle[1])} @@"
        yield from (f"-{line}" for line in middle[0])
        yield from (f"+{line}" for line in middle[1])
        return
    for number, line in enumerate(difflib.unified_diff(*middle, n=_CONTEXT, lineterm="")):
        if number >= 2:  # skip the names, which are already there
            yield _HUNK.sub(partial(_shifted, by=start), line) if line.startswith("@@") else line


def _shifted(numbers: re.Match[str], by: int) -> str:
    sign, line, rest = numbers.groups()
    return f"{sign}{int(line) + by}{rest or ''}"


def _split(text: str) -> list[str]:
    """Split a text at line feeds only, because other separators are characters of its lines."""
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _text(version: FileVersion | None) -> FileText | None:
    """Return a version as text: empty if there is none, None for a binary file."""
    if version is None:
        return FileText("")
    if version.is_link:
        return FileText(f"-> {show_name(os.fsdecode(version.data))}\n")
    try:
        return read_file_text(version.data, "")
    except ToolError:
        return None


def _is_text(version: FileVersion) -> bool:
    return _text(version) is not None
