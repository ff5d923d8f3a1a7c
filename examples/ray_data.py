"""Plan every request of the transcripts in a directory of Parquet, on Ray Data.

    pip install 'rolling-chat[ray]'
    python examples/ray_data.py transcripts/ rows/ --model gpt-4o --max-input-tokens 8192

A row of the input is a conversation: a column `messages`, as lists of structs or as JSON text, and perhaps
`id` and `tools`. A row of the output is a request, with the columns of `rolling-chat replay`. It is the same
function that `replay --jobs` runs in its processes, so the rows are the same, in whatever order Ray has them.

On one machine `rolling-chat replay transcripts/ --jobs 8 --output rows.parquet` does it without Ray.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import ray

from rolling_chat import Replayer
from rolling_chat.replay import TranscriptError, row_schema


def plan_requests(batch: pa.Table, replayer: Replayer) -> pa.Table:
    """Turn a batch of conversations into a batch of requests."""
    rows = [row for conversation in batch.to_pylist() for row in rows_of(conversation, replayer)]
    return pa.Table.from_pylist(rows, schema=row_schema())


def rows_of(conversation: dict[str, Any], replayer: Replayer) -> Iterator[dict[str, Any]]:
    """Plan the requests of one conversation, and name on stderr what is none."""
    file = conversation["path"]
    try:
        yield from replayer.rows(conversation, name=file, file=file)
    except TranscriptError as error:
        print(error, file=sys.stderr)


def plan(source: str, target: str, replayer: Replayer) -> int:
    """Read a directory of Parquet, plan its requests, and write them to another; return their number."""
    transcripts = ray.data.read_parquet(source, include_paths=True)
    requests = transcripts.map_batches(
        plan_requests, fn_kwargs={"replayer": replayer}, batch_format="pyarrow", batch_size=64
    )
    requests.write_parquet(target)
    return int(ray.data.read_parquet(target).count())


def main() -> None:
    """Read the command line, and run on the cluster that there is, or on this machine alone."""
    parser = argparse.ArgumentParser(description="Plan the requests of transcripts on Ray Data.")
    parser.add_argument("source", help="a directory of Parquet with a column `messages`")
    parser.add_argument("target", help="a directory for the rows")
    parser.add_argument("--model", required=True)
    parser.add_argument("--max-input-tokens", type=int, default=0, help="default: the model's own window")
    options = parser.parse_args()
    if not ray.is_initialized():
        ray.init()
    began = time.perf_counter()
    replayer = Replayer.create(options.model, max_input_tokens=options.max_input_tokens)
    count = plan(options.source, options.target, replayer)
    print(f"{count} rows in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
