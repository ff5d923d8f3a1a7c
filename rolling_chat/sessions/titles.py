"""Titles that sessions get by themselves: rule-based, from what the user said first."""

from __future__ import annotations

import re

from rolling_chat.text import one_line

TITLE_CHARACTERS = 60

_MIN_KEPT = 0.6  # of a title that is cut at a space; below it, the word itself is cut
_LOOKED_AT = 20_000  # characters
# what begins a line of Markdown and says nothing: heading, list, quote, task
_MARKS = re.compile(r"^(?:[#>*+•-]+\s+|\d+[.)]\s+|\[[ xX]\]\s+)+")
_FENCE = re.compile(r"^(?:`{3,}|~{3,})")
_GREETINGS = frozenset(
    {
        *(
            "hi",
            "hello",
            "hey",
            "hallo",
            "hola",
            "salut",
            "bonjour",
            "ciao",
            "servus",
            "moin",
            "hiya",
            "howdy",
        ),
        *(
            "good",
            "guten",
            "morning",
            "afternoon",
            "evening",
            "day",
            "tag",
            "morgen",
            "there",
            "all",
            "everyone",
        ),
        *("test", "testing", "ping", "thanks", "thank", "you", "please", "ok", "okay", "yes", "no", "yo"),
    }
)


def title_of(text: str) -> str:
    """Make a title for a session that begins with `text`: its first line that says something.

    Where there is none, its first line; empty only for what is blank.
    """
    lines = [_MARKS.sub("", line.strip()) for line in text[:_LOOKED_AT].splitlines()]
    lines = [line for line in lines if line and not _FENCE.match(line)]
    said = next(filter(says_something, lines), lines[0] if lines else "")
    return _cut(one_line(said, 4 * TITLE_CHARACTERS))


def says_something(line: str) -> bool:
    """Return whether a title is more than a greeting, and need not wait for a better one."""
    words = re.findall(r"[^\W_]+", line.lower())
    return any(word not in _GREETINGS for word in words)


def better_title(before: str, text: str, *, begins: bool) -> str:
    """Return the title that a user's message gives its session; empty where it keeps the one `before`.

    What begins the branch titles it, also anew; what comes later only where that was a greeting.
    """
    title = title_of(text)
    is_better = begins or not before or (says_something(title) and not says_something(before))
    return title if is_better else ""


def _cut(line: str) -> str:
    """Return at most TITLE_CHARACTERS, cut after a word where one ends near."""
    if len(line) <= TITLE_CHARACTERS:
        return line
    kept = line[: TITLE_CHARACTERS - 1]
    at_space = kept if line[len(kept)] == " " else kept.rpartition(" ")[0]
    return (at_space if len(at_space) >= _MIN_KEPT * TITLE_CHARACTERS else kept).rstrip(" ,;:–-") + "…"
