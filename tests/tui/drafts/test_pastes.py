"""Long pastes as tokens: what stands for what, and what nobody can forge."""

from __future__ import annotations

import pytest

from rolling_chat.tui.drafts.pastes import (
    Draft,
    clean,
    drawn,
    fits_unfolded,
    folded,
    is_long,
    restored,
    spans,
    token,
)

LOG = "".join(f"line {number}\n" for number in range(10_000))


def no_price(_text: str) -> int:
    return 0


def test_a_token_says_how_long_the_paste_is_and_what_it_costs() -> None:
    assert drawn(token(1, LOG, 84_000)) == "[paste 1: 10,000 lines, ~84k tokens]"
    assert drawn(token(2, "x" * 2_000, 0)) == "[paste 2: 2,000 characters]"


def test_a_draft_is_sent_with_every_paste_in_its_place() -> None:
    draft = Draft(f"before {token(1, LOG, 9)} between {token(2, 'two', 0)} after", {1: LOG, 2: "two"})
    assert draft.whole == f"before {LOG} between two after"


def test_a_paste_whose_token_was_deleted_is_not_used_any_more() -> None:
    assert Draft("nothing", {1: LOG}).used == {}


def test_the_words_of_a_token_typed_by_hand_are_words() -> None:
    by_hand = drawn(token(1, LOG, 84_000))
    assert Draft(by_hand, {1: LOG}).whole == by_hand
    assert not list(spans(by_hand))


def test_a_token_that_is_pasted_from_elsewhere_is_words_too() -> None:
    assert not list(spans(clean(token(1, LOG, 84_000))))


def test_pasted_text_that_holds_a_token_is_not_expanded_again() -> None:
    draft = Draft(token(1, "x", 0) + token(2, "y", 0), {1: "see [paste 2: 1 line]", 2: "two"})
    assert draft.whole == "see [paste 2: 1 line]two"


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("line\n" * 10, False),
        ("line\n" * 11, True),
        ("line\n" * 10 + "last", True),
        ("x" * 1_500, False),
        ("x" * 1_501, True),
        ("", False),
    ],
)
def test_more_than_ten_lines_or_fifteen_hundred_characters_is_long(text: str, long: bool) -> None:
    assert is_long(text) is long


def test_the_box_holds_no_line_and_no_text_that_would_make_keys_wait() -> None:
    assert fits_unfolded("line of a log\n" * 5_000)
    assert not fits_unfolded("x" * 20_000)
    assert not fits_unfolded("line\n" * 100_000)


def test_text_that_comes_back_is_folded_where_it_was_and_only_there() -> None:
    draft = folded(f"look: {LOG} so", [LOG, "absent"], no_price)
    assert drawn(draft.text) == "look: [paste 1: 10,000 lines] so"
    assert draft.whole == f"look: {LOG} so"
    assert folded("a\nb", [], no_price) == Draft("a\nb", {})


def test_text_that_is_too_much_for_the_box_is_folded_whole() -> None:
    draft = folded(f"{LOG}{LOG}", [], no_price)
    assert drawn(draft.text) == "[paste 1: 20,000 lines]"
    assert draft.whole == LOG + LOG


def test_a_draft_from_a_file_is_cleaned_and_a_paste_that_is_gone_leaves_its_words() -> None:
    text = f"\x1b[31m{token(1, 'one', 0)} {token(2, LOG, 0)}\x07"
    draft = restored(text, {1: "o\x1bne", 7: "never mentioned"})
    assert draft.whole == "[31mone [paste 2: 10,000 lines]"
    assert draft.pastes == {1: "one"}
