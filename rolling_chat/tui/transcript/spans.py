"""Spans of styled text: the inside of a paragraph, and highlighted code."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from rich.style import Style
from rich.syntax import Syntax

from rolling_chat.tui.transcript.colors import diff_lines

if TYPE_CHECKING:
    from markdown_it.token import Token
    from pygments.lexer import Lexer

    from rolling_chat.tui.transcript.colors import Palette
    from rolling_chat.tui.transcript.lines import StyledLine


_ADDED = {
    "strong_open": Style(bold=True),
    "em_open": Style(italic=True),
    "s_open": Style(strike=True),
}

_log = logging.getLogger("rolling_chat.tui")
_DARK, _LIGHT = "one-dark", "default"
_DIFF = ("diff", "patch", "udiff")


def inline_lines(tokens: Sequence[Token], base: Style, palette: Palette) -> list[StyledLine]:
    """Return the lines of an inline token's children; line breaks of the source are kept."""
    lines: list[StyledLine] = [[]]
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
    """Return a style that marks text as a clickable link, without sending a hyperlink to the terminal."""
    return Style(meta={"link": link})


def code_lines(code: str, info: str, above: str, palette: Palette) -> list[StyledLine]:
    """Return highlighted lines of code; `info` is the fence's, `above` gives context and is not drawn."""
    base = palette.style(palette.text, raised=True)
    language = info.split(maxsplit=1)[0].lower() if info else ""
    if language in _DIFF:
        return diff_lines(code, palette)
    lexer = _lexer(language)
    if lexer is None:
        return [[(line, base)] for line in code.split("\n")]
    try:
        tokens = list(lexer.get_tokens(above + code))
    except Exception:  # a lexer that breaks on half a program must not hide it
        _log.debug("code could not be colored", exc_info=True)
        return [[(line, base)] for line in code.split("\n")]
    styles = _styles(palette)
    lines: list[StyledLine] = [[]]
    skip = len(above)
    for kind, text in tokens:
        shown = text[skip:] if skip else text
        skip = max(0, skip - len(text))
        if not shown:
            continue
        style = styles[kind]
        first, *others = shown.split("\n")
        lines[-1].append((first, style))
        lines.extend([(other, style)] for other in others)
    return lines


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=16)
def _styles(palette: Palette) -> _TokenStyles:
    return _TokenStyles(palette)


class _TokenStyles(dict[object, Style]):
    """A cache of styles by token type: a screen of code has thousands of tokens."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._base = palette.style(palette.text, raised=True)
        self._theme = Syntax.get_theme(_DARK if palette.dark else _LIGHT)

    def __missing__(self, kind: object) -> Style:
        style = self._theme.get_style_for_token(kind)  # type: ignore[arg-type]
        look = Style(color=style.color, bold=style.bold, italic=style.italic, underline=style.underline)
        self[kind] = self._base + look
        return self[kind]
