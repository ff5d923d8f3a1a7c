"""The benchmark of long sessions: its figures can be had again, and can fail."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests.benchmarks.long_run.figures import lines_of, ratio
from tests.benchmarks.long_run.reading import facts_said, hits_of
from tests.benchmarks.long_run.sessions import JOURNAL, Done, LongRun, Plan
from tests.benchmarks.long_run.tasks import understand
from tests.benchmarks.long_run.world import WITHIN, World
from tests.support.patience import PATIENCE_SECONDS

SMALL = Plan(window=8_000, tokens=40_000, output=700, fresh=False)


def run(plan: Plan, folder: Path) -> list[Done]:
    return asyncio.run(LongRun(plan, folder).turns())


def figures(turns: Sequence[Done]) -> list[Done]:
    """All but ids and exact sizes: a turn that was begun twice has taught twice how the model counts."""
    return [replace(one, head="", counts=replace(one.counts, fullest=0.0)) for one in turns]


def done(turns: Sequence[Done]) -> int:
    return sum(one.is_done is True for one in turns)


def share_of_needing(turns: Sequence[Done]) -> float:
    """Of the tasks that need something from before."""
    needing = [one for one in turns if one.kind not in ("", WITHIN)]
    return done(needing) / len(needing)


def run_in_a_process(folder: str) -> None:
    run(SMALL, Path(folder))


def test_everything_that_is_said_and_asked_is_read_as_it_is_meant() -> None:
    world = World(seed=2)
    for turn in islice(world.turns(), 2_000):
        task = understand(turn.text)
        assert (task is None or task.verb == "nothing") == (not turn.kind), turn
        for need in task.needs if task else ():
            said = [source.said for source in turn.sources if source.said]
            known = [one.value for text in said for one in facts_said(text) if one.key == need.key]
            assert not said or known[-1] in (*turn.answer, *(turn.edit or ())), turn


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_figures(tmp_path: Path) -> None:
    folder = tmp_path / "run"  # the same for both: its name is in the prompt
    whole = run(SMALL, folder)
    folder.rename(tmp_path / "whole")
    process = multiprocessing.get_context("spawn").Process(target=run_in_a_process, args=(str(folder),))
    process.start()
    journal = folder / JOURNAL
    while not journal.exists() or journal.read_text().count("\n") < len(whole) // 3:
        assert process.is_alive() or process.exitcode == 0
        process.join(0.01)
    process.kill()
    process.join(PATIENCE_SECONDS)
    assert figures(run(SMALL, folder)) == figures(whole)


@pytest.mark.slow
def test_an_agent_that_does_not_ask_for_what_it_does_not_see_does_worse(tmp_path: Path) -> None:
    asking, blind = run(SMALL, tmp_path / "a"), run(replace(SMALL, recalls=False), tmp_path / "b")
    assert sum(one.counts.over for one in (*asking, *blind)) == 0
    assert sum(one.counts.trims for one in asking) > 0
    assert sum(one.counts.recalls for one in asking) > 0
    assert done(asking) > 0.9 * sum(bool(one.kind) for one in asking)
    assert share_of_needing(blind) < 0.8 * share_of_needing(asking)


def test_the_figures_compare_with_fresh_sessions(tmp_path: Path) -> None:
    turns = run(replace(SMALL, tokens=15_000, fresh=True), tmp_path / "a")
    assert all(one.is_done_fresh for one in turns if one.kind)
    assert ratio(turns) == pytest.approx(done(turns) / sum(bool(one.kind) for one in turns))
    assert "0 over" in "\n".join(lines_of(8_000, turns))


def test_a_run_of_another_kind_is_not_gone_on_with(tmp_path: Path) -> None:
    run(replace(SMALL, tokens=1), tmp_path)
    with pytest.raises(ValueError, match="another run"):
        run(replace(SMALL, tokens=1, seed=9), tmp_path)


def test_what_recall_shows_is_read_message_by_message() -> None:
    shown = "\n".join(
        (
            "r7 user, line 1 of 2",
            "  (r6 assistant: Noted.)",
            "  1: The reviewer of iron-vault is Mei Sato.",
            "[newest with 'iron-vault', newest first]",
            "r40 user: iron-vault gets another reviewer: Olga Novak instead of Mei Sato.",
        )
    )
    values = {hit.number: [one.value for one in hit.facts] for hit in hits_of(shown)}
    assert values == {6: [], 7: ["Mei Sato"], 40: ["Olga Novak"]}
