"""`python -m tests.soak`: episodes, or one long session; see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.soak.walk import Plan, Result, run_walk


def main() -> int:
    """Run what the command line asks for; 1 where a promise was broken."""
    options = _options()
    root = Path(options.log or tempfile.mkdtemp(prefix="soak-"))
    without = frozenset(filter(None, options.without.split(",")))
    patience = 6.0 if options.turns else 0.0
    plan = Plan(options.actions, options.turns, without, patience, options.tell, options.direct)
    seeds = range(options.seed, options.seed + options.episodes)
    alone = len(seeds) == 1
    failed, totals, seconds = 0, Counter[str](), 0.0
    with ProcessPoolExecutor(max_workers=1 if alone else options.workers, max_tasks_per_child=1) as pool:
        running = {pool.submit(run_walk, seed, root / f"seed-{seed}", plan) for seed in seeds}
        for done in as_completed(running):
            result = done.result()
            failed += bool(result.failure)
            totals.update(result.counts)
            seconds += result.seconds
            print(_line(result), flush=True)
    print(f"\n{len(seeds)} walks, {failed} failed, {seconds / len(seeds):.1f} s each; journals in {root}")
    for name, count in sorted(totals.items()):
        print(f"{count:8} {name}")
    return 1 if failed else 0


def _line(result: Result) -> str:
    figures = f"{result.seconds:6.1f} s  {result.peak / 1e6:4.0f} MB"
    if not result.failure:
        return f"seed {result.seed}: {figures}  whole"
    return f"seed {result.seed}: {figures}  FAILED\n{result.report}\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first episode")
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--actions", type=int, default=60, help="an episode")
    parser.add_argument("--turns", type=int, default=0, help="one long session of so many messages instead")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--without", default="", help="actions and faults to leave out, with commas between")
    parser.add_argument("--log", default="", help="an empty folder for journals, homes and stores")
    parser.add_argument("--direct", default="", help='"auto" or "off"; else by turns, even seeds "auto"')
    parser.add_argument("--tell", action="store_true", help="print every action")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
