"""The gauge tells the truth in any width."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.report import Fate, PromptReport
from rolling_chat.messages import Usage
from rolling_chat.tui.widgets.gauge import GLYPHS, Figures, Level, bar, bar_width, level


def report(**changes: object) -> PromptReport:
    values: dict[str, object] = {
        "model": "m", "rolling": False, "window": 8192, "reserve": 2048, "margin": 819,
        "system": 400, "tools": 300, "summary": 0, "history": 200, "current": 100, "bound": 1100,
        "within_budget": True, "history_budget": 5000, "trim_at": 5000, "floor": 3600,
    }  # fmt: skip
    return PromptReport(**{**values, **changes})  # type: ignore[arg-type]  # plain values by name


SPENT = Usage(cost=0.14)
SIZE = st.integers(0, 300_000)


@given(
    st.integers(1, 300),
    st.fixed_dictionaries(
        dict.fromkeys(("system", "tools", "history", "current", "draft", "window", "trim_at"), SIZE)
    ),
)
def test_the_bar_fills_its_width_whatever_the_figures(width: int, sizes: dict[str, int]) -> None:
    assert len(bar(report(**sizes), width)) == width


def test_every_category_that_is_there_is_seen() -> None:
    drawn = Counter(cell.category for cell in bar(report(summary=1, draft=1, window=200_000), 40))
    assert set(drawn) >= {
        "system",
        "tools",
        "summary",
        "history",
        "current",
        "draft",
        "free",
        "reserve",
        "margin",
    }


def test_no_two_categories_look_alike() -> None:
    assert len(set(GLYPHS.values())) == len(GLYPHS)


def test_the_tick_stands_at_the_next_trim() -> None:
    drawn = bar(report(trim_at=4096), 40)
    assert [at for at, cell in enumerate(drawn) if cell.category == "tick"] == [20]


MODEL_SAID: dict[str, object] = {"exact": True, "band": 0.021, "pace": 100, "until_trim": 2300}


def test_the_figures_stand_in_one_order() -> None:
    left = {"fates": {Fate.SENT: 9, Fate.OMITTED: 12, Fate.SUMMARIZED: 3, Fate.EXCLUDED: 1}}
    words = Figures.of(report(rolling=True, **MODEL_SAID, **left), SPENT).fit(160)
    assert words == ["1.0k ±2% / 8.2k  12 %", "≈ 23 turns left", "rolling: on", "16 left out", "$0.14"]


def test_the_figures_fit_sixty_columns_with_a_bar_beside_them() -> None:
    words = Figures.of(report(rolling=True, **MODEL_SAID), SPENT).fit(58)
    assert words == ["1.0k ±2% / 8.2k  12 %", "≈ 23 turns", "rolling: on"]
    assert bar_width(58, words) >= 10
    words = Figures.of(report(rolling=True), SPENT).fit(58)
    assert words == ["~1.0k / 8.2k  12 %", "rolling: on", "$0.14"]


def test_at_forty_columns_the_band_gives_way_to_the_turns() -> None:
    words = Figures.of(report(rolling=True, **MODEL_SAID), SPENT).fit(38)
    assert words == ["1.0k / 8.2k  12 %", "≈ 23 turns"]
    assert bar_width(38, words) >= 6


def test_what_has_no_room_is_left_out_and_the_size_stays() -> None:
    assert Figures.of(report(), SPENT).fit(30) == ["~1.0k / 8.2k  12 %"]


@pytest.mark.parametrize(
    ("pace", "until_trim", "draft", "words"),
    [
        (0, 9000, 0, ""),
        (100, 2399, 0, "≈ 23 turns left"),
        (100, 100, 0, "≈ 1 turn left"),
        (100, 99, 0, "<1 turn left"),
        (100, -5, 0, "<1 turn left"),
        (100, 1000, 90, "≈ 10 turns left"),
        (100, 1000, 501, "≈ 5 turns left"),
        (100, 1000, 1001, "<1 turn left"),
        (10, 99_999, 0, "≈ 10.0k turns left"),
    ],
)
def test_the_turns_left_are_those_that_fit_at_the_pace(
    pace: int, until_trim: int, draft: int, words: str
) -> None:
    changes = {"pace": pace, "until_trim": until_trim, "draft": draft}
    assert Figures.of(report(**changes), Usage()).turns == words.replace("10.0k", "10k")


def test_what_does_not_fit_says_so_in_words() -> None:
    assert Figures.of(report(within_budget=False, **MODEL_SAID), Usage()).turns == "does not fit"


@pytest.mark.parametrize(("exact", "draft", "sign"), [(True, 0, ""), (True, 9, "~"), (False, 0, "~")])
def test_a_figure_is_an_estimate_until_the_model_confirms_it(exact: bool, draft: int, sign: str) -> None:
    used = Figures.of(report(exact=exact, draft=draft), Usage()).used
    assert used.startswith("~") == bool(sign)


def test_the_band_is_shown_where_the_model_has_confirmed_the_rest() -> None:
    assert Figures.of(report(exact=True, band=0.021), Usage()).band == " ±2%"
    for changes in ({"exact": True, "band": 0.004}, {"band": 0.3}, {"exact": True, "band": 0.3, "draft": 9}):
        assert Figures.of(report(**changes), Usage()).band == ""


def test_an_unknown_window_shows_the_size_alone() -> None:
    assert Figures.of(report(window=0), Usage()).fit(160)[0] == "~1.0k"


@pytest.mark.parametrize(
    ("cost", "cached", "words"),
    [
        (None, 0, ""), (0.0, 0, ""), (0.004, 0, "<$0.01"), (0.14, 0, "$0.14"), (12.0, 0, "$12.00"),
        (0.14, 820, "$0.14 · 82 % cached"), (None, 820, "82 % cached"),
    ],
)  # fmt: skip
def test_cost_and_cached_share_are_shown_where_they_are_known(
    cost: float | None, cached: int, words: str
) -> None:
    assert Figures.of(report(), Usage(1_000, 5, cached, cost=cost)).cost == words


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Level.PLAIN),
        ({"history": 3459}, Level.PLAIN),
        ({"history": 3460}, Level.NEAR),  # 4,260 of a room of 5,325 are 80 %
        ({"draft": 3460}, Level.NEAR),
        ({"history": 4259}, Level.FULL),
        ({"within_budget": False}, Level.FULL),
        ({"window": 0}, Level.PLAIN),
    ],
)
def test_the_color_goes_by_the_room_for_the_prompt(changes: dict[str, object], expected: Level) -> None:
    assert level(report(**changes)) is expected


def test_what_streams_counts_to_the_current_turn_and_is_an_estimate() -> None:
    before = report(**MODEL_SAID)
    after = before.grown(150)
    assert (after.used, after.current, after.until_trim) == (before.used + 150, 250, 2150)
    assert not after.exact
    assert before.grown(0) is before
