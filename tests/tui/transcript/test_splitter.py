"""However a text comes, its blocks are the same; none is large, and nothing is swallowed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tui.transcript.blocks import Block, BlockKind
from rolling_chat.tui.transcript.splitter import Splitter

LINES = st.sampled_from(
    [
        "para text here", "", "", "- item", "- other", "  continued", "    code", "1. one", "2. two",
        "> quote", "> > deeper", "```python", "```", "~~~", "x = 1", "| a | b |", "|---|---|", "| 1 | 2 |",
        "# head", "---", "===", "[x]: http://y.z", "see [x] now", "  - nested", "* star", "+ plus", "\tTab",
        "1) paren", "**bold", "text\\", "***", "    - deep", "word " * 30, "z" * 300,
    ]
)  # fmt: skip
DOCUMENTS = st.lists(LINES, max_size=60).map("\n".join)
LONG = st.builds(
    lambda head, count, line: head + "\n".join([line] * count), DOCUMENTS, st.integers(20, 120), LINES
)
TEXTS = st.one_of(DOCUMENTS, LONG, st.builds("{}\n{}\n{}".format, DOCUMENTS, LONG, DOCUMENTS))


def _whole(text: str) -> list[Block]:
    splitter = Splitter()
    splitter.feed(text)
    splitter.end()
    while splitter.step():
        pass
    return splitter.settled


def _in_pieces(text: str, chance: random.Random) -> list[Block]:
    splitter, at = Splitter(), 0
    while at < len(text):
        size = chance.choice([1, 3, 10, 100, 1000])
        splitter.feed(text[at : at + size])
        at += size
        while splitter.step():
            pass
    return splitter.settled + splitter.tail()


@given(TEXTS, st.randoms(use_true_random=False))
def test_a_text_that_comes_in_pieces_has_the_blocks_of_the_whole(text: str, chance: random.Random) -> None:
    assert _in_pieces(text, chance) == _whole(text)


@given(TEXTS)
def test_no_block_is_large(text: str) -> None:
    for block in _whole(text):
        assert len(block.source) <= 4096 + 200
        assert block.source.count("\n") <= 170


@given(st.lists(st.tuples(LINES, st.integers(0, 999)), max_size=40))
def test_no_word_is_swallowed(parts: list[tuple[str, int]]) -> None:
    """Every line ends with a word of its own; each is in one block, in order."""
    text = "\n".join(f"{line} w{number}e" if line.strip(" -=*`~|") else line for line, number in parts)
    words = [word for word in text.split() if word[0] == "w" and word.endswith("e")]
    found = [
        word for block in _whole(text) for part in (block.info, block.source) for word in part.split()
        if word[0] == "w" and word.endswith("e")
    ]  # fmt: skip
    assert found == words


GIANTS = {
    "fence": "```python\n" + "def f(x):\n    return x + 1\n" * 3000,
    "paragraph": "The quick **brown** fox. " * 4000,
    "lines": "a line\n" * 12_000,
    "line": "x" * 200_000,
    "list": "- an item of it\n" * 6000,
    "item": "- an item\n" + "  that goes on\n" * 6000,
    "table": "| a | b |\n|---|---|\n" + "| 1234 | hello |\n" * 5000,
    "quote": "> a quote that goes on\n" * 4000,
    "deep": ">" * 5000 + "x",
    "definitions": "[x]: http://y.z\n" * 3000,
    "indented": "    code\n" * 9000,
    "wide row": "| a | b |\n|---|---|\n| " + "c" * 50_000 + " | d |\n",
}


@pytest.mark.parametrize("name", GIANTS)
@pytest.mark.slow
def test_a_giant_settles_as_it_comes(name: str) -> None:
    splitter = Splitter()
    for at in range(0, len(GIANTS[name]), 997):
        splitter.feed(GIANTS[name][at : at + 997])
        while splitter.step():
            pass
        if at > 20_000:
            assert sum(len(block.source) for block in splitter.tail()) < 12_000
    whole = _whole(GIANTS[name])
    assert splitter.settled + splitter.tail() == whole
    assert all(len(block.source) <= 4096 + 200 for block in whole)


def test_code_keeps_every_character() -> None:
    code = "".join(f"line {n}\twith\ttabs\n" for n in range(200))
    blocks = _whole(f"```\n{code}```\n")
    assert {block.kind for block in blocks} == {BlockKind.CODE}
    assert "".join(block.source for block in blocks) == code


def test_a_numbered_list_goes_on_counting() -> None:
    assert [block.number for block in _whole("3. a\n3. b\n\n3. c\n")] == [3, 4, 5]


def test_blocks_stand_apart_but_the_items_of_a_tight_list_do_not() -> None:
    assert [block.gap for block in _whole("para\n\n- a\n- b\n\n- c\n\nend")] == [
        False,
        True,
        False,
        True,
        True,
    ]
