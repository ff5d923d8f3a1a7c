"""Words that were looked for, marked on rows that are drawn already."""

from __future__ import annotations

import re

from rich.style import Style
from textual.strip import Strip

_MARK = Style(reverse=True, bold=True)
_LEAST_LETTERS = 2  # a single letter would mark half the page
_MOST_WORDS = 32


def words_pattern(words: str) -> re.Pattern[str] | None:
    """What finds `words` and what begins with them, whatever their case; None where there are none."""
    wanted = [word for word in re.findall(r"[^\W_]+", words)[:_MOST_WORDS] if len(word) >= _LEAST_LETTERS]
    if not wanted:
        return None
    # the longest first: one word may be the beginning of another
    alike = "|".join(map(re.escape, sorted(wanted, key=len, reverse=True)))
    return re.compile(rf"(?<![^\W_])(?:{alike})", re.IGNORECASE)


def marked(strip: Strip, pattern: re.Pattern[str]) -> Strip:
    """The row with every match marked."""
    parts, at = [], 0
    for match in pattern.finditer(strip.text):
        # matches count characters; strips are cut by cells
        start, end = strip.index_to_cell_position(match.start()), strip.index_to_cell_position(match.end())
        parts += [strip.crop(at, start), strip.crop(start, end).apply_style(_MARK)]
        at = end
    return Strip.join([*parts, strip.crop(at)]) if parts else strip
