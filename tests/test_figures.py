"""Figures as people read them."""

from __future__ import annotations

import pytest

from rolling_chat import figures


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (1249, "1.2k"), (9949, "9.9k"), (9950, "10k"), (41_200, "41k"),
     (999_499, "999k"), (999_500, "1.00M"), (2_000_000, "2.00M")],
)  # fmt: skip
def test_tokens(count: int, shown: str) -> None:
    assert figures.tokens(count) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(8192, "8.2k"), (200_000, "200k"), (128_000, "128k"), (1_000_000, "1.00M")]
)
def test_window(count: int, shown: str) -> None:
    assert figures.window(count) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (4_200, "4 KB"), (999_500, "1 MB"), (500_000_000, "500 MB")],
)
def test_size(count: int, shown: str) -> None:
    assert figures.size(count) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0 %"), (0.2, "<1 %"), (1, "1 %"), (20.6, "21 %"), (130, "130 %")]
)
def test_percent(share: float, shown: str) -> None:
    assert figures.percent(share) == shown


@pytest.mark.parametrize(("dollars", "shown"), [(None, ""), (0, ""), (0.002, "<$0.01"), (0.14, "$0.14")])
def test_what_costs_nothing_or_nobody_knows_what_is_not_shown(dollars: float | None, shown: str) -> None:
    assert figures.cost(dollars) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3, "just now"), (600, "10 min ago"), (7200, "2 h ago"), (400_000, "5 days ago")]
)
def test_age(seconds: float, shown: str) -> None:
    assert figures.age(seconds) == shown
