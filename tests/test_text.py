"""Foreign text never steers the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.text import normalize_text, one_line, split_whole, typed, visible


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]8;;http://evil\x07click\x1b]8;;\x07", "␛]8;;http://evil␇click␛]8;;␇"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\x00b\x7f", "a␀b␡"),
        ("safe\u202egpj.exe", "safe<U+202E>gpj.exe"),
        ("rm\u200b -rf", "rm<U+200B> -rf"),
        ("one\r\ntwo\rthree\x0bfour", "one\ntwo␍three␋four"),
        ("\tindented", "    indented"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_control_characters_become_visible(foreign: str, shown: str) -> None:
    assert visible(foreign) == shown


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_that_controls_is_left(foreign: str) -> None:
    for text in (visible(foreign), one_line(foreign), typed(foreign)):
        assert not any(
            char != "\n" and (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000)
            for char in text.replace("\t", "")
        )
    assert "\n" not in one_line(foreign)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Grüße, 漢字, 👩‍👩‍👧, naïve — “quoted”\nsecond line"
    assert visible(text) == text


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_becomes_one_that_can_be_stored(text: str) -> None:
    normalize_text(text).encode("utf-8")
    assert normalize_text(normalize_text(text)) == normalize_text(text)


@given(st.text())
def test_whole_text_is_left_alone(text: str) -> None:
    assert normalize_text(text) == text


@given(st.text(st.characters(min_codepoint=0x10000)), st.data())
def test_a_pair_cut_anywhere_is_whole_again(text: str, data: st.DataObject) -> None:
    halves = text.encode("utf-16-le")
    cut = 2 * data.draw(st.integers(0, len(halves) // 2))
    shown = held = ""
    for piece in (halves[:cut], halves[cut:]):
        whole, held = split_whole(held + piece.decode("utf-16-le", "surrogatepass"))
        shown += normalize_text(whole)
    assert (shown, held) == (text, "")
