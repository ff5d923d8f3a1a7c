"""The inside of a paragraph: emphasis, code, links, as spans of styled text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from rich.style import Style

if TYPE_CHECKING:
    from markdown_it.token import Token

    from rolling_chat.tui.transcript.palette import Palette

Line: TypeAlias = list[tuple[str, Style]]

_ADDED = {
    "strong_open": Style(bold=True),
    "em_open": Style(italic=True),
    "s_open": Style(strike=True),
}


def inline_lines(tokens: Sequence[Token], base: Style, palette: Palette) -> list[Line]:
    """The lines of an inline token's children; a line break of the source is one on the screen."""
    lines: list[Line] = [[]]
    for text, style in _spans(tokens, base, palette):
        first, *others = text.split("\n")
        lines[-1].append((first, style))
        lines.extend([(other, style)] for other in others)
    return lines


def _spans(tokens: Sequence[Token], base: Style, palette: Palette) -> Iterator[tuple[str, Style]]:
    styles = [base]
    link = label = ""
    for token in tokens:
        match token.type:
            case "softbreak" | "hardbreak":
                yield "\n", styles[-1]
            case "code_inline":
                yield token.content, styles[-1] + _code(palette)
                label += token.content
            case "image":
                yield f"{token.content or 'image'} ({token.attrGet('src') or ''})", styles[-1]
            case "link_open":
                link, label = str(token.attrGet("href") or ""), ""
                styles.append(styles[-1] + _link(palette, link))
            case "link_close":
                styles.pop()
                if link and link not in (label, f"mailto:{label}"):
                    yield f" ({link})", styles[-1] + Style(color=palette.muted) + _target(link)
                link = ""
            case "strong_open" | "em_open" | "s_open":
                styles.append(styles[-1] + _ADDED[token.type])
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case _:
                yield token.content, styles[-1]
                label += token.content


@lru_cache(maxsize=16)
def _code(palette: Palette) -> Style:
    return Style(color=palette.secondary, bgcolor=palette.raised)


@lru_cache(maxsize=256)
def _link(palette: Palette, link: str) -> Style:
    return Style(color=palette.accent, underline=True) + _target(link)


def _target(link: str) -> Style:
    """Marks text as a link's: a click asks before it follows. No hyperlink reaches the terminal."""
    return Style(meta={"link": link})
