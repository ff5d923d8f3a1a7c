"""Convert text to content of the protocol, so that clients interpret nothing in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent, TerminalToolCallContent

from rolling_chat.acp.diffs import Hunk, read_diff
from rolling_chat.messages import Json
from rolling_chat.text import count_undecided, exact, visible

MAX_SHOWN = 50_000
"""The maximum characters of a result sent to a client; the session contains all of it."""

CallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

_FENCE = re.compile(r"`{3,}")
_MAX_DEPTH = 20


def fenced(text: str, language: str = "") -> str:
    """Put a code fence around a text, longer than any fence in it."""
    fence = "`" * max(3, 1 + max((len(run[0]) for run in _FENCE.finditer(text)), default=0))
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def fenced_content(text: str, language: str = "") -> ContentToolCallContent:
    """Return a text in a code fence, as the content of a tool call."""
    return tool_content(text_block(fenced(text, language)))


def notice(text: str) -> str:
    """Return a line of the program as a quoted paragraph, distinct from the model's text."""
    plain = visible(text).replace("[", "\\[").replace("<", "\\<")
    quoted = "\n".join(f"> {line}" for line in plain.splitlines())
    return f"\n\n{quoted}\n\n"


def shortened(text: str) -> str:
    """Return a text cut to MAX_SHOWN characters, with a count of the rest."""
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}\n… and {len(text) - MAX_SHOWN:,} more characters, which /recall shows"


def diff_content(diff: str, folder: Path, *, approves: bool = False) -> list[CallContent]:
    """Return a unified diff as old and new texts, or unchanged if those would not show all of it.

    With `approves`, everything easily overlooked is shown as a code.
    """
    clean: Callable[[str], str] = exact_lines if approves else partial(visible, tabs=True)
    read = read_diff(diff)
    if read is None:
        return [fenced_content(clean(diff))]
    content: list[CallContent] = [_hunk_content(hunk, folder, clean) for hunk in read.hunks]
    if read.notes:
        content.append(fenced_content(clean("\n".join(read.notes))))
    return content


def _hunk_content(hunk: Hunk, folder: Path, clean: Callable[[str], str]) -> CallContent:
    old = None if hunk.old is None else clean(hunk.old)
    return tool_diff_content(str(folder / hunk.name), clean(hunk.new), old)


def exact_lines(text: str) -> str:
    """Return text in exact form, for approval, but with tabs kept."""
    return "\t".join(map(exact, text.split("\t")))


def cleaned(value: Json, depth: int = 0) -> Json:
    """Return a JSON value with control characters in its texts made visible."""
    if depth > _MAX_DEPTH:
        return "…"
    match value:
        case str():
            return visible(shortened(value), tabs=True)
        case Mapping():
            return dict(_cleaned_items(value, depth))
        case Sequence():
            return [cleaned(one, depth + 1) for one in value]
        case _:
            return value


def _cleaned_items(value: Mapping[str, Json], depth: int) -> Iterator[tuple[str, Json]]:
    for key, one in value.items():
        yield visible(str(key)), cleaned(one, depth + 1)


class StreamedText:
    """A filter that makes control characters visible in streamed text."""

    def __init__(self) -> None:
        self._held = ""
        self._above = ""

    def take(self, piece: str) -> str:
        """Add a piece; return the text that can be shown now."""
        text = self._held + piece
        held = count_undecided(text)
        shown, self._held = (text[:-held], text[-held:]) if held else (text, "")
        return self._show(shown)

    def rest(self) -> str:
        """Return the text held back, once the stream has ended."""
        text, self._held = self._held, ""
        return self._show(text)

    def _show(self, text: str) -> str:
        shown = visible(text, tabs=True, above=self._above)
        self._above = (self._above + text)[-2:]
        return shown
