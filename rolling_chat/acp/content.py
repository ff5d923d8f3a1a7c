"""Texts of ours and of others as content of the protocol: nothing in them is interpreted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent, TerminalToolCallContent

from rolling_chat.acp.diffs import Hunk, read_diff
from rolling_chat.messages import Json
from rolling_chat.text import exact, visible, waits

MAX_SHOWN = 50_000
"""Characters of a result that a client is sent; the whole is in the session."""

CallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

_FENCE = re.compile(r"`{3,}")
_MAX_DEPTH = 20


def fenced(text: str, language: str = "") -> str:
    """Put a fence around a text that nothing in it can close."""
    fence = "`" * max(3, 1 + max((len(run[0]) for run in _FENCE.finditer(text)), default=0))
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def fenced_content(text: str, language: str = "") -> ContentToolCallContent:
    """Return a text as it is, as the content of a tool call."""
    return tool_content(text_block(fenced(text, language)))


def notice(text: str) -> str:
    """Return a line of the program's own as a paragraph that cannot be taken for the model's."""
    plain = visible(text).replace("[", "\\[").replace("<", "\\<")
    quoted = "\n".join(f"> {line}" for line in plain.splitlines())
    return f"\n\n{quoted}\n\n"


def shortened(text: str) -> str:
    """Return a text with what clients are not sent only counted."""
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}\n… and {len(text) - MAX_SHOWN:,} more characters, which /recall shows"


def diff_content(diff: str, folder: Path, *, approves: bool = False) -> list[CallContent]:
    """Return a unified diff as old and new texts; as it is where those would not say all of it.

    What is to be approved is shown with everything that is easily overlooked as a code.
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
    """Return text as it is approved; only tabs stay what they are."""
    return "\t".join(map(exact, text.split("\t")))


def cleaned(value: Json, depth: int = 0) -> Json:
    """Return a JSON value with the controls in its texts made visible."""
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
    """Makes the controls in a text visible that comes in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._above = ""

    def take(self, piece: str) -> str:
        """Return what of the text can be shown by now."""
        text = self._held + piece
        held = waits(text)
        shown, self._held = (text[:-held], text[-held:]) if held else (text, "")
        return self._show(shown)

    def rest(self) -> str:
        """Return what waited for more, once the text is whole."""
        text, self._held = self._held, ""
        return self._show(text)

    def _show(self, text: str) -> str:
        shown = visible(text, tabs=True, above=self._above)
        self._above = (self._above + text)[-2:]
        return shown
