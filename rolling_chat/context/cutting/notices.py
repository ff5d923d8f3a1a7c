"""Describe in a shortened text what was cut out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_MAX_RANGES = 6  # named in the recall line; the marks name every gap
_MAX_NOTE = 400  # characters


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in a shortened text: its first and last line, and its size.

    `part` describes a gap that is less than a line.
    """

    first: int
    last: int
    chars: int
    part: str = ""

    @property
    def mark(self) -> str:
        """The mark that replaces the gap."""
        if self.part:
            return f"[… {self.part}]"
        if self.last > self.first:
            return f"[… lines {self.first}-{self.last}]"
        return f"[… line {self.first}]"


Describe: TypeAlias = Callable[[str, str, Sequence[Gap]], list[str]]
"""Return the lines of a notice from the kind of a text, a note about it, and its gaps."""


def describer(indicator: str, recall: str, *, brief: bool = False) -> Describe:
    """Return a function that describes gaps: `indicator` first, then `recall`, the line for reading them.

    A brief notice consists of these two lines only.
    """

    def describe(name: str, note: str, gaps: Sequence[Gap]) -> list[str]:
        if brief:
            return [line for line in (indicator, recall) if line]
        noted = f"{name}; {note[:_MAX_NOTE]}" if note else name
        entries = [f"{indicator} [{noted}]"]
        return [*entries, recall_with_lines(recall, gaps)] if recall else entries

    return describe


def recall_with_lines(recall: str, gaps: Sequence[Gap]) -> str:
    """Return the recall line with the largest gaps, such as `[recall: r17 lines 200-400, 900-950]`."""
    largest = sorted((gap for gap in gaps if not gap.part), key=lambda gap: -gap.chars)[:_MAX_RANGES]
    ranges = dict.fromkeys((gap.first, gap.last) for gap in sorted(largest, key=lambda gap: gap.first))
    if not ranges or not recall.endswith("]"):
        return recall
    ranges_text = ", ".join(f"{first}-{last}" for first, last in ranges)
    return f"{recall[:-1]} lines {ranges_text}]"
