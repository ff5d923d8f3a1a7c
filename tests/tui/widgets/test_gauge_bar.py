"""The gauge tells the truth in any width."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.report import PromptReport
from rolling_chat.tui.widgets.gauge_bar import GLYPHS, Figures, bar, bar_width


def report(**changes: object) -> PromptReport:
    values: dict[str, object] = {
        "model": "m", "rolling": False, "window": 8192, "reserve": 2048, "margin": 819,
        "system": 400, "tools": 300, "summary": 0, "history": 200, "current": 100, "bound": 1100,
        "within_budget": True, "history_budget": 5000, "trim_at": 5000, "floor": 3600,
    }  # fmt: skip
    return PromptReport(**{**values, **changes})  # type: ignore[arg-type]  # plain values by name


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


def test_the_figures_fit_sixty_columns_with_a_bar_beside_them() -> None:
    words = Figures.of(report(rolling=True), 0.14).fit(58)
    assert words == ["~1.0k / 8.2k  12 %", "rolling: on", "$0.14"]
    assert bar_width(58, words) >= 8


def test_what_has_no_room_is_left_out_and_the_size_stays() -> None:
    assert Figures.of(report(), 0.14).fit(30) == ["~1.0k / 8.2k  12 %"]


@pytest.mark.parametrize(("exact", "draft", "sign"), [(True, 0, ""), (True, 9, "~"), (False, 0, "~")])
def test_a_figure_is_an_estimate_until_the_model_confirms_it(exact: bool, draft: int, sign: str) -> None:
    used = Figures.of(report(exact=exact, draft=draft), None).used
    assert used.startswith("~") == bool(sign)


def test_the_band_is_shown_where_the_model_has_confirmed_the_rest() -> None:
    assert Figures.of(report(exact=True, band=0.021), None).used.startswith("1.0k ±2% / ")
    assert "±" not in Figures.of(report(exact=True, band=0.004), None).used
    assert "±" not in Figures.of(report(exact=False, band=0.3), None).used


def test_an_unknown_window_shows_the_size_alone_and_an_unknown_price_nothing() -> None:
    figures = Figures.of(report(window=0), None)
    assert (figures.used, figures.cost) == ("~1.0k", "")
