"""The gauge tells the truth in any width."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text
from textual.app import App, ComposeResult

from rolling_chat.commands.cache_lines import cache_word
from rolling_chat.context.report import Fate, PromptReport, Row
from rolling_chat.messages import Usage
from rolling_chat.tui.widgets.gauge import GLYPHS, Figures, Gauge, Level, bar, bar_width, level


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


MODEL_SAID: dict[str, object] = {"exact": True, "above": 21, "below": 9, "pace": 100, "until_trim": 2300}


def test_the_figures_stand_in_one_order() -> None:
    left = {"fates": {Fate.SENT: 9, Fate.OMITTED: 12, Fate.SUMMARIZED: 3, Fate.EXCLUDED: 1}}
    words = Figures.of(report(rolling=True, **MODEL_SAID, **left), SPENT).fit(160)
    assert words == ["1.0k ±2% / 8.2k  12 %", "≈ 23 turns left", "rolling: on", "16 left out", "$0.14"]


def test_the_figures_fit_sixty_columns_with_a_bar_beside_them() -> None:
    words = Figures.of(report(rolling=True, **MODEL_SAID), SPENT).fit(58)
    assert words == ["1.0k ±2% / 8.2k  12 %", "≈ 23 turns", "rolling: on"]
    words = Figures.of(report(rolling=True), SPENT).fit(58)
    assert words == ["~1.0k / 8.2k  12 %", "rolling: on", "$0.14"]


def test_at_forty_columns_the_band_gives_way_to_the_turns() -> None:
    words = Figures.of(report(rolling=True, **MODEL_SAID), SPENT).fit(38)
    assert words == ["1.0k / 8.2k  12 %", "≈ 23 turns"]


@pytest.mark.parametrize("width", [20, 38, 49, 50, 58, 78, 118, 158, 238])
def test_bar_and_figures_share_the_line_whatever_the_figures_are(width: int) -> None:
    assert bar_width(width) >= min(width, 6)
    assert bar_width(width) <= bar_width(width + 1)
    costly = Usage(99_999, 99_999, 99_000, cost=812.5)
    left_out = {"fates": {Fate.OMITTED: 12_345}}
    for changes in ({}, MODEL_SAID, {**MODEL_SAID, **left_out, "window": 1_000_000, "current": 99_000}):
        for usage in (Usage(), SPENT, costly):
            words = Figures.of(report(rolling=True, **changes), usage, "mode: plan", "cache 59m").fit(width)
            assert bar_width(width) + sum(len(word) + 2 for word in words) <= width or len(words) == 1


def test_at_eighty_columns_all_that_matters_has_room() -> None:
    words = Figures.of(report(**MODEL_SAID), SPENT).fit(78)
    assert words == ["1.0k ±2% / 8.2k  12 %", "≈ 23 turns left", "rolling: off", "$0.14"]
    assert bar_width(78) == 17


class TestBand:
    def hatched(self, **changes: object) -> list[int]:
        drawn = bar(report(window=8_000, reserve=800, margin=800, trim_at=0, **changes), 80)
        return [at for at, cell in enumerate(drawn) if cell.category == "band"]

    def test_it_is_hatched_around_the_end_of_what_is_used(self) -> None:
        # 400 + 300 + 200 + 100 tokens are ten cells
        assert self.hatched(below=150, above=510) == [*range(8, 15)]
        assert self.hatched(below=40, above=20) == []
        assert self.hatched(above=5_000) == [*range(10, 60)]

    def test_every_category_keeps_a_cell_in_it(self) -> None:
        drawn = bar(report(below=1_000, above=9_000, summary=1, draft=1), 80)
        assert {cell.category for cell in drawn} == {*GLYPHS, "tick"} - {"free"}

    def test_what_streams_in_and_what_is_typed_make_it_wider(self) -> None:
        before = report(below=10, above=20, spread=0.5)
        assert (before.grown(100).below, before.grown(100).above) == (60, 70)
        typed = before.with_draft(100)
        assert (typed.below, typed.above) == (60, 70)
        assert typed.with_draft(0) == before


class TestTurnsLeft:
    def test_they_are_counted_down_from_fifty(self) -> None:
        assert Figures.of(report(pace=100, until_trim=4_999), Usage()).turns == "≈ 49 turns left"
        assert Figures.of(report(pace=100, until_trim=5_000), Usage()).turns == ""

    def test_they_do_not_rise_while_the_window_fills(self) -> None:
        before = report(pace=100, until_trim=2_300)
        shorter = report(pace=50, until_trim=2_250, history=250).after(before)
        assert shorter.turns_left == 23
        assert report(pace=50, until_trim=400, history=250).after(shorter).turns_left == 8

    @pytest.mark.parametrize(
        "freed",
        [
            {"rows": ()},
            {"fates": {Fate.OMITTED: 1}},
            {"model": "another"},
            {"window": 16_000},
            {"rolling": True},
            {"trim_at": 6_000},
        ],
    )
    def test_they_rise_when_something_was_freed(self, freed: dict[str, object]) -> None:
        row = Row(0, "m1", "user", Fate.SENT, "", 9, 9)
        before = report(pace=100, until_trim=2_300, rows=(row,))
        assert (
            report(**{"pace": 50, "until_trim": 2_300, "rows": (row,), **freed}).after(before).turns_left
            == 46
        )


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
    ],
)
def test_the_turns_left_are_those_that_fit_at_the_pace(
    pace: int, until_trim: int, draft: int, words: str
) -> None:
    changes = {"pace": pace, "until_trim": until_trim, "draft": draft}
    assert Figures.of(report(**changes), Usage()).turns == words


def test_what_does_not_fit_says_so_in_words() -> None:
    assert Figures.of(report(within_budget=False, **MODEL_SAID), Usage()).turns == "does not fit"


@pytest.mark.parametrize(("exact", "draft", "sign"), [(True, 0, ""), (True, 9, "~"), (False, 0, "~")])
def test_a_figure_is_an_estimate_until_the_model_confirms_it(exact: bool, draft: int, sign: str) -> None:
    used = Figures.of(report(exact=exact, draft=draft), Usage()).used
    assert used.startswith("~") == bool(sign)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exact": True, "above": 21, "below": 9}, " ±2%"),
        ({"exact": True, "above": 4}, ""),
        ({"below": 300}, " ±30%"),
        ({"below": 300, "above": 5_000}, " ±99%"),
    ],
)
def test_the_band_is_shown_by_its_wider_side(changes: dict[str, object], words: str) -> None:
    assert Figures.of(report(**changes), Usage()).band == words


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


@pytest.mark.parametrize(
    ("left", "word"),
    [
        (None, ""),
        (0.0, "cache cold"),
        (59.0, "cache <1m"),
        (299.0, "cache 4m"),
        (3_599.0, "cache 59m"),
        (86_000.0, "cache 23h"),
    ],
)
def test_the_caches_time_is_counted_by_the_minute(left: float | None, word: str) -> None:
    figures = Figures.of(report(), SPENT, cache=cache_word(left))
    assert (figures.cache, figures.fit(120)[-1]) == (word, word or "$0.14")


async def test_a_token_that_changes_nothing_that_is_seen_draws_nothing() -> None:
    drawn: list[Text] = []

    class CountedGauge(Gauge):
        def render(self) -> Text:
            drawn.append(super().render())
            return super().render()

    class OneGauge(App[None]):
        def compose(self) -> ComposeResult:
            yield CountedGauge()

    async with OneGauge().run_test(size=(100, 3)) as pilot:
        gauge, before = pilot.app.query_one(CountedGauge), report(window=200_000, history=50_000)
        gauge.show(before.grown(1), SPENT)
        await pilot.pause()
        count = len(drawn)
        gauge.show(before.grown(2), SPENT)
        await pilot.pause()
        assert len(drawn) == count
        gauge.show(before.grown(20_000), SPENT)
        await pilot.pause()
        assert len(drawn) == count + 1
