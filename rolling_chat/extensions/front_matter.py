"""Markdown files with YAML front matter, as skills and commands have it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType

from rolling_chat.confined_files import read_inside
from rolling_chat.text import normalize_text, one_line, without_controls

MAX_BYTES = 200_000
"""The maximum bytes of a whole file; no larger one is meant for a model."""

_MAX_FRONT = 20_000  # characters
_MAX_BRACKETS = 200  # a YAML parser takes seconds for thousands
_FRONT = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_BARE_FIELD = re.compile(r"(?m)^([A-Za-z][\w-]*):[ \t]+([^\s!&*{|>\"'].{0,1100})$")


class FrontMatterError(ValueError):
    """A file that cannot be used; `str()` is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A Markdown file: the fields of its front matter, and the text below it."""

    fields: Mapping[str, object]
    body: str

    def text(self, name: str, max_chars: int) -> str:
        """Return a field as one line of at most `max_chars` characters; empty if missing or a table."""
        return _line(self.fields.get(name), max_chars)

    def words(self, name: str, max_chars: int) -> tuple[str, ...]:
        """Return the items of a field that is a list, or a text with spaces or commas between them."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return tuple(filter(None, (_line(item, max_chars) for item in value)))
        return tuple(re.findall(r"[^\s,(]+(?:\([^)]*\))?", _line(value, max_chars)))

    def table(self, name: str, max_chars: int) -> Mapping[str, str]:
        """Return a field that is a table of texts, without nested values."""
        value = self.fields.get(name)
        if not isinstance(value, dict):
            return MappingProxyType({})
        lines = {_line(key, max_chars): _line(item, max_chars) for key, item in value.items()}
        return MappingProxyType({key: line for key, line in lines.items() if key and line})

    def flag(self, name: str) -> bool:
        """Return whether a field is true."""
        return self.fields.get(name) is True


def read_regular_file(path: Path) -> bytes:
    """Read one of the user's own files, even through a symlink. Raises FrontMatterError."""
    try:
        real = path.resolve(strict=True)
        return read_inside(real, real.parent, MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        raise FrontMatterError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None


@functools.lru_cache(maxsize=512)  # the same files are read with every message
def parse_markdown(data: bytes) -> MarkdownFile:
    """Split the bytes of a file into front matter and text. Raises FrontMatterError."""
    if len(data) > MAX_BYTES:
        raise FrontMatterError(f"it is larger than {MAX_BYTES:,} bytes")
    text = normalize_text(data.decode("utf-8-sig", errors="replace")).replace("\r\n", "\n")
    match = _FRONT.match(text)
    if match is None:
        return MarkdownFile(MappingProxyType({}), without_controls(text).strip())
    if len(match[1]) > _MAX_FRONT:
        raise FrontMatterError(f"its front matter is longer than {_MAX_FRONT:,} characters")
    if match[1].count("[") + match[1].count("{") > _MAX_BRACKETS:
        raise FrontMatterError("its front matter is nested too deeply")
    return MarkdownFile(_fields(match[1]), without_controls(text[match.end() :]).strip())


def _fields(front: str) -> Mapping[str, object]:
    try:
        found = _load(front)
    except FrontMatterError:
        # many real files have an unquoted text with a colon, or `[a] [b]`
        quoted = _BARE_FIELD.sub(_quoted, front)
        if quoted == front:
            raise
        found = _load(quoted)
    if found is None:
        return MappingProxyType({})
    if not isinstance(found, dict):
        raise FrontMatterError("its front matter is not a table of names and values")
    return MappingProxyType({key: value for key, value in found.items() if isinstance(key, str)})


def _quoted(match: re.Match[str]) -> str:
    """Quote the value of a field unless it is valid YAML."""
    try:
        _load(match[0])
    except FrontMatterError:
        return f"{match[1]}: {json.dumps(match[2])}" if match[2].isprintable() else match[0]
    return match[0]


def _load(front: str) -> object:
    import yaml  # noqa: PLC0415 - not needed to start

    try:
        return yaml.safe_load(front)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        raise FrontMatterError(
            f"its front matter is broken: {line}{one_line(str(error.problem), 100)}"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise FrontMatterError(f"its front matter is broken: {one_line(str(error), 100)}") from None


def _line(value: object, max_chars: int) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float() | date():
            return one_line(normalize_text(str(value)), max_chars)
        case _:
            return ""
