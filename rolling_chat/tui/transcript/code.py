"""Code in colours: pygments' tokens as spans of styled text."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from rich.style import Style
from rich.syntax import Syntax

from rolling_chat.tui.transcript.diff import diff_lines

if TYPE_CHECKING:
    from pygments.lexer import Lexer

    from rolling_chat.tui.transcript.inline import Line
    from rolling_chat.tui.transcript.palette import Palette

_log = logging.getLogger("rolling_chat.tui")

_DARK, _LIGHT = "one-dark", "default"
_DIFF = ("diff", "patch", "udiff")


def code_lines(code: str, info: str, above: str, palette: Palette) -> list[Line]:
    """The lines of a piece of code; `info` is its fence's, `above` the code before it, read but not drawn."""
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
        _log.debug("code could not be coloured", exc_info=True)
        return [[(line, base)] for line in code.split("\n")]
    styles = _styles(palette)
    lines: list[Line] = [[]]
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
    """Styles by kind of token, each made once: a screen of code has thousands of tokens."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._base = palette.style(palette.text, raised=True)
        self._theme = Syntax.get_theme(_DARK if palette.dark else _LIGHT)

    def __missing__(self, kind: object) -> Style:
        style = self._theme.get_style_for_token(kind)  # type: ignore[arg-type]
        look = Style(color=style.color, bold=style.bold, italic=style.italic, underline=style.underline)
        self[kind] = self._base + look
        return self[kind]
