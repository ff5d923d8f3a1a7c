from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.segment import Segment

from rolling_chat.tui.transcript import growing as module
from rolling_chat.tui.transcript.blocks import Block, BlockKind
from rolling_chat.tui.transcript.colors import Palette
from rolling_chat.tui.transcript.growing import Growing
from rolling_chat.tui.transcript.lines import Line, framed
from rolling_chat.tui.transcript.markdown import block_lines
from tests.support.answers import one_paragraph

PALETTE = Palette()
FRONT = Segment("  ", PALETTE.style(PALETTE.text))
LINKS = {"A": {"href": "http://a", "title": ""}}
_MARKS = [
    *"*_`[]()!<>&\\~\n|#-",
    *("**", "__", "~~", "``", "[a]", "](b)", "[a](b)", "![", "<http://x>", "&amp;", "&#9;", "\\*", "  \n"),
    *("snake_case", "2*3", "a_", "_a", "漢字", "👩‍💻", "e\u0301", "https://x.y/z", "[A]", "`code`", "*em*"),
]
texts = st.lists(st.one_of(st.sampled_from(_MARKS), st.sampled_from([" ", " ", " ", "word", "to be", "."])))


def afresh(block: Block, width: int) -> list[Line]:
    return framed(block_lines(block, width, PALETTE, LINKS), FRONT, FRONT, is_text=False)


def grow(text: str, kind: BlockKind, width: int, steps: list[int]) -> int:
    """Check that the text, shown in steps, is drawn as afresh each time; return how much was settled."""
    growing, end = Growing(), 0
    for step in steps:
        end = min(len(text), end + step)
        block = Block(kind, text[:end], 7)
        lines = growing.lines(block, width, PALETTE, LINKS, FRONT)
        if lines is not None:
            assert lines == afresh(block, width)
    return len(growing._settled)


@given(texts, st.sampled_from([BlockKind.INLINE, BlockKind.MARKDOWN]), st.integers(1, 30), st.integers(1, 9))
@example(["a "] * 40 + ["*b", " c*"] * 9, BlockKind.INLINE, 12, 3)
def test_a_paragraph_that_grows_is_drawn_as_afresh(
    parts: list[str], kind: BlockKind, width: int, step: int
) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MIN_SETTLED", 1)
        grow(text, kind, width, [step] * (len(text) // step + 1))


def test_what_is_settled_of_a_paragraph_is_not_drawn_again() -> None:
    growing, text = Growing(), one_paragraph(4_000)
    before: list[Line] = []
    for end in range(100, 4_000, 100):
        lines = growing.lines(Block(BlockKind.INLINE, text[:end], 0), 80, PALETTE, {}, FRONT)
        assert lines is not None
        kept = sum(one is other for one, other in zip(before, lines, strict=False))
        assert kept >= len(before) - 5
        before = lines


def test_what_is_open_is_not_settled() -> None:
    assert grow("an *emphasis that goes " + "on and " * 100, BlockKind.INLINE, 40, [50] * 20) == 0
    assert grow("a snake_case and 2 * 3 and a[0] " + "on and " * 100, BlockKind.INLINE, 40, [50] * 20) > 400


def test_what_turns_out_to_be_no_paragraph_is_left_to_others() -> None:
    growing = Growing()
    for text, is_paragraph in (("a title", True), ("a title\n", True), ("a title\n===", False)):
        drawn = growing.lines(Block(BlockKind.MARKDOWN, text, 0), 40, PALETTE, {}, FRONT)
        assert (drawn is not None) is is_paragraph


def test_a_long_random_paragraph_in_random_steps() -> None:
    rng = random.Random(1)
    for _ in range(30):
        text = "".join(rng.choice([*_MARKS, *["word "] * 60, *[" "] * 20]) for _ in range(400))
        grow(text, BlockKind.INLINE, rng.randint(5, 90), [rng.randint(1, 120) for _ in range(60)])
