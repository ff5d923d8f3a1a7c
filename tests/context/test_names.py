"""Names in any text are found whole, and prose is not mistaken for names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.names import NameKind, kind_of, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Look at src/lexer.py:88, then stop.", {"src/lexer.py": NameKind.PATH}),
        ("in ./run/a.sh and ~/.bashrc.", {"run/a.sh": NameKind.PATH, "~/.bashrc": NameKind.PATH}),
        ("see https://example.com/a/b?x=1", {"example.com/a/b": NameKind.PATH}),
        ("Lexer.next_token() raised ValueError", {
            "Lexer.next_token": NameKind.SYMBOL, "ValueError": NameKind.ERROR,
        }),
        ('{"user_id": "u", "maxSize": true}', {"user_id": NameKind.SYMBOL, "maxSize": NameKind.SYMBOL}),
        ("ENOENT and SIGSEGV", {"ENOENT": NameKind.ERROR, "SIGSEGV": NameKind.ERROR}),
        ("order #W5918442 or ORD-4431.", {
            "#W5918442": NameKind.IDENTIFIER, "ORD-4431": NameKind.IDENTIFIER,
        }),
        ("costs $1,234.50 on 2024-01-02, 12 of 999", {
            "$1,234.50": NameKind.NUMBER, "2024-01-02": NameKind.NUMBER, "999": NameKind.NUMBER,
        }),
        ("请看src/解析/a.py文件", {"src": None}),
        ("write to ann.b@example.com!", {"ann.b@example.com": NameKind.IDENTIFIER}),
        ("путь src/разбор.py", {"src/разбор.py": NameKind.PATH}),
    ],
)  # fmt: skip
def test_a_name_is_found_whole(text: str, names: dict[str, NameKind | None]) -> None:
    wanted = {name: kind for name, kind in names.items() if kind is not None}
    assert {name: kind for name, kind in names_in(text) if name in wanted} == wanted


@pytest.mark.parametrize(
    "text",
    [
        "Nothing here is a name. It is prose, e.g. this; well-known words, 12 of them, and I/O.",
        "ALL CAPITALS ARE SHOUTED",
        "deadbeef" * 5,
        "AKIA" + "A1b2" * 10,
        "",
    ],
)
def test_prose_and_random_letters_are_no_names(text: str) -> None:
    assert list(names_in(text)) == []


@given(st.text(alphabet="aB9_./@#$~%+-, :\n中é", max_size=300))
def test_whatever_is_found_is_a_name_in_the_text(text: str) -> None:
    for name, kind in names_in(text):
        assert name in text
        assert kind_of(name) is kind
