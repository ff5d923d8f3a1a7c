"""The picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from rolling_chat.replay import Sample, draw_picture

SVG = "{http://www.w3.org/2000/svg}"


def sample(*tokens: int, conversation: str = "a", trimmed: bool = False, refused: bool = False) -> Sample:
    return Sample(conversation, tokens or (100, 0, 0, 2000, 500), trimmed, refused, window=8192, room=6000)


def drawn(*samples: Sample, title: str = "a title") -> ElementTree.Element:
    return ElementTree.fromstring(draw_picture(samples, title=title, subtitle="settings"))


def classes(picture: ElementTree.Element, tag: str) -> list[str]:
    return [element.get("class", "") for element in picture.iter(f"{SVG}{tag}")]


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def corners(picture: ElementTree.Element, category: str) -> list[tuple[float, float]]:
    [path] = [
        element
        for element in picture.iter(f"{SVG}path")
        if element.get("class") == category and element.find(f"{SVG}title") is not None
    ]
    numbers = re.findall(r"(-?[\d.]+),(-?[\d.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in numbers]


def test_categories_that_occur_are_stacked_and_named() -> None:
    picture = drawn(sample(), sample(100, 0, 0, 3000, 0))
    assert [name for name in ("system", "history", "current turn") if name in texts(picture)] == [
        "system",
        "history",
        "current turn",
    ]
    assert "tools" not in texts(picture)
    assert "summary" not in texts(picture)
    lowest = max(y for _, y in corners(picture, "system"))
    tops = [min(y for _, y in corners(picture, name)) for name in ("system", "history", "current")]
    assert lowest > tops[0] > tops[1]
    assert tops[1] > tops[2] or tops[1] == pytest.approx(min(tops))


def test_what_is_too_little_to_be_seen_is_not_in_the_legend() -> None:
    assert "system" not in texts(drawn(sample(3, 0, 0, 5000, 0)))


def test_heights_are_in_proportion_to_tokens() -> None:
    picture = drawn(sample(2000, 0, 0, 2000, 0))
    system, history = (
        max(y for _, y in corners(picture, name)) - min(y for _, y in corners(picture, name))
        for name in ("system", "history")
    )
    assert system == pytest.approx(history, abs=0.2)


def test_window_room_axes_and_legend_are_labelled() -> None:
    picture = drawn(sample(100, 0, 0, 5000, 0))
    assert {"window 8,192", "room for the prompt 6,000", "tokens of the prompt", "request"} <= set(
        texts(picture)
    )


def test_a_window_far_above_is_said_and_not_drawn() -> None:
    picture = drawn(sample(10, 0, 0, 100, 0))
    assert "window 8,192: far above ↑" in texts(picture)
    assert "window" not in classes(picture, "line")


@pytest.mark.parametrize(("requests", "tag"), [(20, "path"), (500, "line")])
def test_every_trim_is_marked(requests: int, tag: str) -> None:
    picture = drawn(*(sample(trimmed=place % 2 == 0) for place in range(requests)))
    in_legend = tag == "path"
    assert classes(picture, tag).count("trim") == requests // 2 + in_legend
    assert any(f"({requests // 2:,})" in text for text in texts(picture))


def test_refused_requests_in_a_row_are_one_block_whatever_their_size() -> None:
    big = sample(100, 0, 0, 10**9, 0, refused=True)
    picture = drawn(sample(100, 0, 0, 5000, 0), big, big, sample(100, 0, 0, 5000, 0))
    assert classes(picture, "rect").count("refused") == 2  # the legend's, and the block
    assert "window 8,192" in texts(picture)
    assert "refused, does not fit (2)" in texts(picture)


def test_conversations_are_separated() -> None:
    picture = drawn(sample(), sample(conversation="b"), sample(conversation="b"))
    assert classes(picture, "line").count("between") == 1


def test_a_hundred_thousand_requests_make_a_small_file() -> None:
    samples = [sample(100, 0, 0, place % 5000, 7, trimmed=place % 99 == 0) for place in range(100_000)]
    assert len(draw_picture(samples, title="t", subtitle="s")) < 400_000


def test_no_request_at_all_says_so() -> None:
    assert "no requests: the transcript contains no model call" in texts(drawn())


@pytest.mark.parametrize("title", ["<script>&\"'", "\x00\x1b[31m\ud800\uffff", "x" * 10_000])
def test_foreign_names_cannot_break_the_picture(title: str) -> None:
    picture = drawn(sample(), title=title)
    assert not list(picture.iter(f"{SVG}script"))
    assert max(map(len, texts(picture))) <= 160
