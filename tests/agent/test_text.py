from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.text import normalize_text, split_whole


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_becomes_one_that_can_be_stored(text: str) -> None:
    normalize_text(text).encode("utf-8")
    assert normalize_text(normalize_text(text)) == normalize_text(text)


@given(st.text())
def test_normalize_text_is_left_alone(text: str) -> None:
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
