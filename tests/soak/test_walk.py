"""The random walk: a short one with every run of the tests, many and a long one in the slow tier."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.walk import Plan, run_walk

EPISODES, ACTIONS, TURNS = 200, 60, 1_500
SHORT_SEED = 14
SHORT = Plan(
    actions=6,
    patience=60.0,
    without=frozenset({"second", "hangs"}),
)


def test_a_short_walk_breaks_no_promise(tmp_path: Path) -> None:
    result = run_walk(SHORT_SEED, tmp_path / "walk", SHORT)
    assert not result.failure, result.report
    assert result.counts["probes"]
    assert result.counts["plain answers"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, EPISODES + 1))
def test_an_episode_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    result = run_walk(seed, tmp_path / "walk", Plan(actions=ACTIONS))
    assert not result.failure, result.report


@pytest.mark.slow
def test_a_long_session_breaks_no_promise(tmp_path: Path) -> None:
    result = run_walk(0, tmp_path / "walk", Plan(turns=TURNS, patience=6.0))
    assert not result.failure, result.report
