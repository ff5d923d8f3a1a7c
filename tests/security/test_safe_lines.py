"""No line of the transcript holds a character that steers the terminal, also once it is decoded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.text import count_undecided, visible
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look, Palette
from tests.support.transcripts import drawn_item
from tests.support.tui import idle, make_app, make_chat, reads, says, type_line

LOOK = Look(60, Palette())
EVERYTHING = st.characters(exclude_categories=())
# one place for a text each
PLACES = (
    "{}", "# {}", "{}\n===", "- {}\n  - {}", "1. {}", "> {}", "**{}** *{}* ~~{}~~", "[{}](http://a.example)",
    "[a](http://a.example/{})", "[a](<{}> '{}')", "![{}](x{})", "<http://a.example/{}>", "`{}`", "    {}",
    "```{}\n{}\n```", "```python\nx = '{}'\n```", "```diff\n+{}\n```", "| {} | a |\n|--|--|\n| {} | {} |",
    "[a]: http://a.example/{}\n\n[a] {}", "x  \n{}\\\n{}",
)  # fmt: skip
ENTITIES = (
    "&#13;", "&#x202e;", "&#12;", "&lrm;", "&rlm;", "&#x9b;", "&#x85;", "&#x2028;", "&#27;", "&#x200b;",
    "&NewLine;", "&Tab;", "&#8;", "&shy;", "&#xE000;", "&zwj;", "&#xFE0F;", "&#x3164;",
    "&#xE0041;",
)  # fmt: skip


def steers(texts: Iterable[str]) -> list[str]:
    """The characters that are no ink, no space, and join none."""
    bad = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    chars = (char for text in texts for char in text if char not in "\u200c\u200d")
    return [char for char in chars if unicodedata.category(char) in bad]


def drawn(item: Item, **options: object) -> list[str]:
    """The raw texts of all segments of an item."""
    pieces = drawn_item(item, LOOK, **options)  # type: ignore[arg-type]
    return [segment.text for piece in pieces for line in piece for segment in line.segments]


@pytest.mark.parametrize("place", PLACES)
def test_what_an_entity_stands_for_is_shown(place: str) -> None:
    for entity in ENTITIES:
        source = place.replace("{}", f"SAFE{entity}EVIL")
        assert not steers(drawn(Item("a", Kind.ASSISTANT, source)))


def test_a_decoded_character_does_not_get_lost() -> None:
    assert "SAFE␍EVIL" in "".join(drawn(Item("a", Kind.ASSISTANT, "SAFE&#13;EVIL")))
    assert "a<U+202E>b" in "".join(drawn(Item("a", Kind.ASSISTANT, "# a&#x202e;b")))


@given(
    st.sampled_from(PLACES), st.text(EVERYTHING | st.sampled_from("\r\x1b\u202e\u200d\u2028"), max_size=12)
)
def test_no_character_gets_past_markdown(place: str, text: str) -> None:
    entities = "".join(f"&#{ord(char)};" for char in text)
    for written in (text, entities):
        assert not steers(drawn(Item("a", Kind.ASSISTANT, place.replace("{}", written))))


@given(
    st.sampled_from(tuple(Kind)),
    st.sampled_from(tuple(Status)),
    st.text(EVERYTHING),
    st.booleans(),
)
def test_no_character_gets_past_any_kind_of_item(
    kind: Kind, status: Status, text: str, is_open: bool
) -> None:
    item = Item("a", kind, text, status, result=text)
    assert not steers(drawn(item, is_open=is_open, rule=text))


def test_families_flags_and_joined_letters_stay_readable() -> None:
    text = "👩‍👩‍👧 ❤️ 1️⃣ 🏳️‍🌈 🇩🇪 می‌خواهم क्‍ष"
    assert text in "".join(drawn(Item("a", Kind.ASSISTANT, text)))


@given(
    st.text(st.sampled_from("👩\u200d\ufe0fa1\u20e3\r\nक\u200c\ud83d\udc69"), max_size=9), st.integers(1, 9)
)
def test_a_text_that_comes_in_pieces_is_shown_as_one_that_came_whole(text: str, size: int) -> None:
    shown, held, above = "", "", ""
    for at in range(0, len(text), size):
        held += text[at : at + size]
        ready = len(held) - count_undecided(held)
        shown += visible(held[:ready], above=above)
        above, held = (above + held[:ready])[-2:], held[ready:]
    assert shown + visible(held, above=above) == visible(text)


def test_a_long_text_of_joined_pictures_is_joined_where_it_is_cut() -> None:
    texts = drawn(Item("a", Kind.REASONING, "👩\u200d👧" * 6000), is_open=True)
    assert "<U+200D>" not in "".join(texts)


async def test_the_strips_that_reach_the_terminal_hold_none(tmp_path: Path) -> None:
    answer = "\n\n".join(place.replace("{}", f"S{''.join(ENTITIES)}E\x9b\u202e") for place in PLACES[:6])
    async with make_app(make_chat(tmp_path, says(answer)), tmp_path).run_test(size=(100, 50)) as pilot:
        await type_line(pilot, "go")
        await idle(pilot)
        await reads(pilot, "done in")
        strips = pilot.app.screen._compositor.render_strips()
        segments = [segment for strip in strips for segment in strip if not segment.control]
        assert any("␍" in segment.text for segment in segments)
        assert not steers(segment.text for segment in segments)
