"""Markdown for the transcript: rich's, with nothing swallowed and no links that a click could follow.

Rich drops raw HTML; here it is text like any other, for a model that writes `<div>` means it.
Kept apart because it brings markdown-it and pygments, which the first paint does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from markdown_it import MarkdownIt
from rich import markdown
from rich.syntax import Syntax
from rich.text import Text

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

_DARK_CODE, _LIGHT_CODE = "one-dark", "default"
_HIGHLIGHT_CHARS = 50_000  # pygments is slow; a longer block is shown plain


class _CodeBlock(markdown.CodeBlock):
    """A code block on the raised ground, without rich's blank lines above and below."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ground = console.get_style("markdown.code_block")
        code = str(self.text).rstrip("\n")
        yield Syntax(
            code,
            self.lexer_name if len(code) <= _HIGHLIGHT_CHARS else "text",
            theme=self.theme,
            word_wrap=True,
            padding=(0, 1),
            background_color=ground.bgcolor.name if ground.bgcolor else None,
        )


class _Heading(markdown.Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")


class _Image(markdown.ImageItem):
    """An image's words and its address; nothing is fetched."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(self.text or "image", f" ({self.destination})", end="")


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


@dataclass(frozen=True, slots=True)
class Block:
    """One top-level block: equal blocks draw equal lines.

    `links` are the document's link definitions, which a block's meaning may hang on.
    """

    source: str
    links: str
    tokens: Sequence[Token] = field(compare=False, repr=False)


def blocks_of(source: str) -> Iterator[Block]:
    """The top-level blocks of a text, in order."""
    environment: dict[str, Any] = {}
    tokens = _PARSER.parse(source, environment)
    links = repr(environment.get("references", ""))
    lines = source.split("\n")
    first = 0
    for at, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            begin, end = tokens[first].map or (0, len(lines))
            yield Block("\n".join(lines[begin:end]), links, tokens[first : at + 1])
            first = at + 1


class TranscriptMarkdown(markdown.Markdown):
    """A block whose HTML is text, whose links show their target, and whose headings stand left."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "heading_open": _Heading,
        "image": _Image,
    }

    def __init__(self, block: Block, *, dark: bool) -> None:
        super().__init__("", code_theme=_DARK_CODE if dark else _LIGHT_CODE, hyperlinks=False)
        self.markup = block.source
        self.parsed = list(block.tokens)
