"""The example of Ray Data, on a Ray of its own."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.replay_jobs import write_transcripts
from tests.support.program import Program, program, program_environment

__all__ = ["program"]

ROOT = Path(__file__).parents[2]
SETTINGS = ("--model", "gpt-4o", "--max-input-tokens", "8192")
MESSAGES = 10_000
_PROCESSES = 2

# nothing listens beyond this machine, and nothing is sent from it
_START = f"""
import runpy, sys
import ray
ray.init(address="local", num_cpus={_PROCESSES}, include_dashboard=False, _node_ip_address="127.0.0.1")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def rows_of(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return sorted(rows, key=lambda row: (row["file"], row["conversation"], row["request"]))


@pytest.mark.slow  # Ray takes half a minute to start
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed")
def test_ray_makes_the_rows_of_replay(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    from pyarrow import parquet, table

    lines = program.folder / "talks.jsonl"
    messages = write_transcripts(lines, MESSAGES)
    talks = [json.loads(line) for line in lines.read_text().splitlines()]
    source, target = program.folder / "talks", program.folder / "rows"
    source.mkdir()
    for number in range(8):
        part = [{**talk, "messages": json.dumps(talk["messages"])} for talk in talks[number::8]]
        columns = {name: [talk[name] for talk in part] for name in ("id", "messages")}
        parquet.write_table(table(columns), source / f"{number}.parquet")
    began = time.perf_counter()
    plain = program.child(
        "replay", str(source), *SETTINGS, "--jobs", str(_PROCESSES), "--output", "rows.parquet"
    )
    took = time.perf_counter() - began
    assert plain.code == 0, plain.err
    argv = (str(ROOT / "examples" / "ray_data.py"), str(source), str(target), *SETTINGS)
    ran = subprocess.run(
        [sys.executable, "-c", _START, *argv],
        cwd=program.folder,
        env=program_environment(program.home, RAY_USAGE_STATS_ENABLED="0"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    wanted, found = rows_of(program.folder / "rows.parquet"), rows_of(target)
    assert len(wanted) == 6 * len(talks)
    assert found == wanted
    said = re.search(r"(\d+) rows in ([\d.]+) s", ran.stdout)
    assert said
    assert int(said[1]) == len(wanted)
    with capsys.disabled():
        for name, seconds in (("plain processes", took), ("Ray Data", float(said[2]))):
            rate = messages / seconds / _PROCESSES
            print(
                f"\n{name}: {rate:,.0f} messages/s a core ({messages:,} messages in {seconds:.1f} s)", end=""
            )
