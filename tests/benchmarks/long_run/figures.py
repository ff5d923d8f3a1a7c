"""The figures of a run: what was done in one session, over what was done in fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from tests.benchmarks.long_run.provider import Counts
from tests.benchmarks.long_run.sessions import Done
from tests.benchmarks.long_run.world import KINDS, WITHIN

GOAL = 0.98
_DISTANCES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def lines_of(window: int, turns: Sequence[Done]) -> Iterator[str]:
    """Yield the share of the tasks, by kind and by distance, then what it took."""
    tasks = [one for one in turns if one.is_done is not None]
    tokens = sum(one.tokens for one in turns)
    yield f"window {window:>7,}: {tokens:,} tokens in {len(turns):,} turns, {_share(tasks)}"
    yield f"    by kind: {_grouped(tasks, lambda one: one.kind, KINDS)}"
    needing, starts = [one for one in tasks if one.kind != WITHIN], _starts(turns)
    near = [_distance(starts[one.turn] - starts[one.stated]) for one in needing]
    by_turn = {one.turn: distance for one, distance in zip(needing, near, strict=True)}
    order = [f"< {limit:,}" for limit in _DISTANCES]
    yield f"    by tokens since: {_grouped(needing, lambda one: by_turn[one.turn], order)}"
    yield f"    {_effort(turns)}"


def ratio(turns: Sequence[Done]) -> float:
    """Return the share of the tasks done in one session over that in fresh sessions."""
    fresh = sum(one.is_done_fresh is True for one in turns)
    return sum(one.is_done is True for one in turns) / fresh if fresh else 0.0


def _share(tasks: Sequence[Done]) -> str:
    here, fresh = sum(one.is_done is True for one in tasks), sum(one.is_done_fresh is True for one in tasks)
    if not fresh:
        return f"{here} of {len(tasks)} tasks done ({100 * here / max(1, len(tasks)):.1f} %)"
    goal = "" if ratio(tasks) >= GOAL else " (!)"
    return f"{here} of {len(tasks)} tasks done, {fresh} in fresh sessions: {ratio(tasks):.3f}{goal}"


def _grouped(tasks: Sequence[Done], group: Callable[[Done], str], order: Sequence[str]) -> str:
    said = []
    for name in order:
        of = [one for one in tasks if group(one) == name]
        if of:
            here, fresh = sum(one.is_done is True for one in of), sum(one.is_done_fresh is True for one in of)
            beside = f", {fresh} fresh" if any(one.is_done_fresh is not None for one in of) else ""
            said.append(f"{name} {here}/{len(of)}{beside}")
    return "; ".join(said)


def _effort(turns: Sequence[Done]) -> str:
    total = sum((one.counts for one in turns), Counts())
    asking = [one for one in turns if one.counts.recalls and one.is_done is not None]
    found = sum(one.is_done is True for one in asking)
    over = "" if total.over == 0 else " (!)"
    fullest = f"the fullest {100 * total.fullest:.1f} % of the window"
    asked = f"recall asked {total.recalls:,} times for {len(asking)} tasks, of which {found} were done"
    return f"{total.requests:,} requests, {total.over} over{over}, {fullest}; {total.trims:,} trims; {asked}"


def _starts(turns: Sequence[Done]) -> list[int]:
    """The tokens that had gone through before each turn."""
    return [0, *accumulate(one.tokens for one in turns)]


def _distance(tokens: int) -> str:
    return next(f"< {limit:,}" for limit in _DISTANCES if tokens < limit)
