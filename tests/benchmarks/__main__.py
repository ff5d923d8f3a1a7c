"""`python -m tests.benchmarks [NAME …]`: run the benchmarks and print their figures."""

from __future__ import annotations

import sys

from tests.benchmarks import (
    accuracy,
    band,
    build_time,
    cache,
    cold_start,
    cold_start_counted,
    extras,
    fits,
    gateway,
    kept,
    kept_cuts,
    library,
    long_run,
    memory,
    names,
    needles,
    never_over,
    oneshot,
    per_turn,
    postgres,
    prompt_cache,
    real_tasks,
    recall,
    remembered,
    replay_jobs,
    scaling,
    transcripts,
    tree,
)
from tests.benchmarks.screen import beside, burst, hostile, resume, resume_100k, start, streaming, working
from tests.benchmarks.screen import memory as screen_memory

BENCHMARKS = {
    "fits": fits.run,
    "build-time": build_time.run,
    "postgres": postgres.run,
    "gateway": gateway.run,
    "scaling": scaling.run,
    "prompt-cache": prompt_cache.run,
    "cache": cache.run,
    "per-turn": per_turn.run,
    "library": library.run,
    "kept": kept.run,
    "kept-cuts": kept_cuts.run,
    "names": names.run,
    "transcripts": transcripts.run,
    "recall": recall.run,
    "memory": memory.run,
    "needles": needles.run,
    "long-run": long_run.run,
    "long-run-80m": long_run.run_slow,
    "tree": tree.run,
    "never-over": never_over.run,
    "accuracy": accuracy.run,
    "band": band.run,
    "cold-start": cold_start.run,
    "cold-start-counted": cold_start_counted.run,
    "real_tasks": real_tasks.run,
    "remembered": remembered.run,
    "oneshot": oneshot.run,
    "replay-jobs": replay_jobs.run,
    "extras": extras.run,
    "screen": beside.run,
    "start": start.run,
    "resume": resume.run,
    "resume-100k": resume_100k.run,
    "streaming": streaming.run,
    "burst": burst.run,
    "screen-memory": screen_memory.run,
    "working": working.run,
    "hostile": hostile.run,
}


def main(names: list[str]) -> int:
    """Run the benchmarks named, or all."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n{name}")
        for line in BENCHMARKS[name]():
            print(f"  {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
