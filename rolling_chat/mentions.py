"""Mentions: files that a user names with `@` in typed text, such as `@src/x.py:10-20` or `@"a b.txt"`.

A typed `@` becomes `MARK`, a character that no keyboard has and that is removed from all input. So an `@` in
pasted, piped or recalled text stays a plain `@` and never names a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MARK = "\U0010fff2"
NOT_TYPED = "\U0010fff3"
"""Replaces a `!` pasted at the beginning of a text, which must not run a command."""

_QUOTED = r'"(?:[^"\\\n]|\\.)+"(?::\d+(?:-\d*)?)?'
_OURS = "\U0010fff0-\U0010fff3"  # characters with a meaning in the prompt box
_MENTION = re.compile(f"{MARK}({_QUOTED}|[^\\s{_OURS}]+)")
_BEING_TYPED = re.compile(f'{MARK}("(?:[^"\\\\\n{MARK}]|\\\\.)*|[^\\s"{MARK}][^\\s{MARK}]*|)$')
_BEFORE = r"(?<![^\s(\[{'\"])"
_TYPED_AT = re.compile(rf"{_BEFORE}@(?=[^\s@])")
_LINES = re.compile(r":(\d{1,9})(-?)(\d{0,9})$")
_PLAIN_PATH = re.compile(r"[^\s\"'`\\:,;!?()\[\]{}<>@]+")
_PATH = re.compile(r"[^/]/[^/]|^[~.]*/.|\w\.\w+$")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_AFTER = ".,;:!?)]}>'\""  # what may follow a path in a sentence
_OPENS = " \t\n([{'\""  # an `@` may follow these
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CODES = {char: name for name, char in _ESCAPES.items()}


@dataclass(frozen=True, slots=True)
class Mention:
    """A path as the user wrote it, and its lines `first` to `last`; `first` 0 is all, `last` 0 the end."""

    path: str
    first: int = 0
    last: int = 0

    @property
    def spelled(self) -> str:
        """The mention as typed after the `@`, quoted if necessary."""
        return f"{_spelled_path(self.path)}{self.lines}"

    @property
    def lines(self) -> str:
        """The lines as typed: `:10-20`, `:10-`, `:10`; empty for all."""
        if not self.first:
            return ""
        last = "" if self.last == self.first else f"-{self.last or ''}"
        return f":{self.first}{last}"


@dataclass(frozen=True, slots=True)
class Place:
    """A mention in a text: its start, and its possible readings with their ends, longest path first."""

    start: int
    readings: tuple[tuple[Mention, int], ...]  # each with its end

    @property
    def is_path(self) -> bool:
        """Whether it almost certainly means a file: it has a slash or a suffix."""
        return _PATH.search(self.readings[-1][0].path) is not None

    @property
    def shown(self) -> str:
        """The mention as shown when there is no such file."""
        return f"@{self.readings[-1][0].spelled}"


def find(text: str) -> Iterator[Place]:
    """Yield the places of marked mentions."""
    for match in _MENTION.finditer(text):
        yield Place(match.start(), tuple(_readings(match[1], match.start(1))))


def being_typed(before: str) -> tuple[int, str] | None:
    """Return start and path of the unfinished mention at the end of `before`, the text up to the cursor."""
    match = _BEING_TYPED.search(before)
    if match is None:
        return None
    raw = match[1]
    return match.start(), _unquoted(raw[1:]) if raw.startswith('"') else raw


def begins(before: str) -> bool:
    """Return whether an `@` typed after `before` begins a mention: never in a word, a command or code."""
    if before.startswith(("/", "!")) or (before and before[-1] not in _OPENS):
        return False
    return before.count("```") % 2 == 0 and before.rpartition("\n")[2].replace("```", "").count("`") % 2 == 0


def marked(text: str) -> str:
    """Mark possible mentions in typed text, but none in e-mail addresses and code."""
    code = [match.span() for match in _CODE.finditer(text)]

    def mark(match: re.Match[str]) -> str:
        return "@" if any(start <= match.start() < end for start, end in code) else MARK

    return _TYPED_AT.sub(mark, without_marks(text))


def plain(text: str) -> str:
    """Return text for display: every mark becomes its plain character."""
    return text.replace(MARK, "@").replace(NOT_TYPED, "!")


def without_marks(text: str) -> str:
    """Return foreign text without the character that would mark a mention."""
    return text.replace(MARK, "")


def remarked(text: str, spelled: list[str]) -> str:
    """Mark the mentions with these spellings, each at its first occurrence."""
    text = without_marks(text)
    for one in sorted(spelled, key=len, reverse=True):
        text = re.sub(rf"{_BEFORE}@{re.escape(one)}(?!\w)", lambda match: MARK + match[0][1:], text, count=1)
    return text


def _readings(raw: str, start: int) -> Iterator[tuple[Mention, int]]:
    if raw.startswith('"') and (quoted := re.match(_QUOTED, raw)):
        closing = raw.rindex('"', 0, quoted.end())
        yield _with_lines(_unquoted(raw[1:closing]), raw[closing + 1 : quoted.end()]), start + quoted.end()
        return
    while raw:
        end = start + len(raw)
        yield Mention(raw), end
        lines = _LINES.search(raw)
        if lines and lines.start():
            yield _with_lines(raw[: lines.start()], lines[0]), end
        if raw[-1] not in _AFTER:
            return
        raw = raw[:-1]


def _with_lines(path: str, lines: str) -> Mention:
    match = _LINES.search(lines)
    if match is None:
        return Mention(path)
    first = max(1, int(match[1]))
    last = int(match[3]) if match[3] else 0 if match[2] else first
    return Mention(path, first, last)


def _spelled_path(path: str) -> str:
    if _PLAIN_PATH.fullmatch(path) and path.isprintable() and path[-1] not in _AFTER:
        return path
    return '"' + "".join(map(_escaped, path)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char in _CODES:
        return f"\\{_CODES[char]}"
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    # a byte that is not text, as Python's surrogateescape represents it
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else char


def _unquoted(text: str) -> str:
    def read(match: re.Match[str]) -> str:
        said = match[1]
        if len(said) == 3:
            code = int(said[1:], 16)
            return chr(code if code < 0x80 else 0xDC00 + code)
        return _ESCAPES.get(said, said)

    return _ESCAPE.sub(read, text)
