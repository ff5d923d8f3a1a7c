"""What stands before the text of a line: a quote's sign, a list's marker, indentation."""

from __future__ import annotations

import re

from rolling_chat.tui.transcript.blocks import Frame

_QUOTED = re.compile(r" {0,3}> ?")
_MARKER = re.compile(r"( {0,3})([-+*]|\d{1,9}[.)])( {1,4}(?! )| |\t|(?=\n|\Z))")


def after(number: int | None) -> int | None:
    """The number of the item after this one; a list without numbers has none."""
    return None if number is None else number + 1


def closing_of(markup: str) -> re.Pattern[str]:
    """What closes a fence that was opened by `markup`."""
    return re.compile(rf"^ {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t]*$", re.MULTILINE)


def dedented(code: str, indent: int) -> str:
    """Code without the indentation of its block."""
    return re.sub(rf"^ {{0,{indent}}}", "", code, flags=re.MULTILINE) if indent else code


def item_indent(item: str) -> int:
    """How far the text of a list item is indented, in characters."""
    found = _MARKER.match(item)
    return len(found[0]) if found else 2


def unframed(line: str, frame: Frame, *, is_first: bool) -> str | None:
    """A line without what makes it part of a quote or an item; None where it is none."""
    if not frame.marker:
        found = _QUOTED.match(line)
        return line[found.end() :] if found and ">" in found[0] else None
    if is_first:
        found = _MARKER.match(line)
        return line[found.end() :] if found else line
    if not line.strip():
        return "\n" if line.endswith("\n") else ""
    shown = line.expandtabs(4) if line[0] in "\t " and "\t" in line[: frame.indent] else line
    return shown[frame.indent :] if not shown[: frame.indent].strip() else None
