"""Words that were looked for, marked in a row."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from textual.strip import Strip

from rolling_chat.tui.transcript.finding import Marked, words_pattern
from rolling_chat.tui.widgets.row_drawer import marked


@pytest.mark.parametrize(
    ("words", "text", "wanted"),
    [
        ("lexer", "The Lexer and lexers, relexer", ["Lexer", "lexer"]),
        ('"in parse_args" (', "in parse_args", ["in", "parse", "args"]),
        ("tab*", "日本 tabs", ["tab"]),
        ("本", "日本", []),
        ("a .*", "a .* b", []),
        ("café", "un café", ["café"]),
    ],
)
def test_words_are_marked_and_nothing_else_is_changed(words: str, text: str, wanted: list[str]) -> None:
    pattern, strip = words_pattern(words), Strip([Segment(text)])
    spans = [Marked(*match.span(), is_current=False) for match in pattern.finditer(text)] if pattern else []
    found = marked(strip, spans)
    assert found.text == text
    assert found.cell_length == strip.cell_length
    assert [segment.text for segment in found if segment.style and segment.style.underline] == wanted
