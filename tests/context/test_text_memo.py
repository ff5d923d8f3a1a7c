"""The memo of texts is bounded, whatever is put into it."""

from __future__ import annotations

from rolling_chat.context.text_memo import TextMemo


def test_a_text_is_worked_out_once() -> None:
    memo: TextMemo[int] = TextMemo()
    made = []
    for _ in range(3):
        memo.get("text", "rest", lambda: made.append(1) or len(made), lambda _: 0)
    assert made == [1]


def test_what_was_asked_for_longest_ago_leaves_first() -> None:
    memo: TextMemo[str] = TextMemo(limit=3_000)
    made = []

    def ask(text: str) -> str:
        return memo.get(text, None, lambda: made.append(text[0]) or text, lambda _: 0)

    for letter in "abacad":
        ask(letter * 1_000)
    assert "".join(made) == "abcd"
    ask("b" * 1_000)
    assert made[-1] == "b"


def test_a_text_too_long_to_hold_is_not_held() -> None:
    memo: TextMemo[int] = TextMemo(limit=1_000)
    made = []
    for _ in range(2):
        memo.get("x" * 1_001, None, lambda: made.append(1) or 0, lambda _: 0)
    assert made == [1, 1]
