"""`rolling-chat usage`: what all sessions have used and cost, by day, model or folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rolling_chat import figures
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import open_saved
from rolling_chat.sessions.records import StoreError, UsageRow
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line

_HEAD = ("", "requests", "input", "from cache", "into cache", "output", "summaries", "cost")


def run_usage(options: Options, paths: Paths) -> int:
    """Print a table, or JSON, with a row for each day, model or folder. Raises Failure."""
    store = open_saved(options, paths)
    try:
        rows = store.usage_rows(options.by)
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return Exit.DONE
    if not rows:
        print("Nothing was sent yet.")
        return Exit.DONE
    for line in _table(options.by, rows):
        print(line)
    if any(row.unpriced for row in rows):
        count = sum(row.unpriced for row in rows)
        print(f"\nThe price of {figures.plural(count, 'request')} is unknown; those are not in the cost.")
    return Exit.DONE


def _table(by: str, rows: Sequence[UsageRow]) -> list[str]:
    cells = [(by, *_HEAD[1:]), *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _cells(row: UsageRow) -> tuple[str, ...]:
    usage = row.usage
    return (
        one_line(row.name, 60) or "unknown",
        f"{row.requests:,}",
        f"{usage.input_tokens:,}",
        f"{usage.cached_read_tokens:,}",
        f"{usage.cached_write_tokens:,}",
        f"{usage.output_tokens:,}",
        f"{row.summaries:,}",
        "unknown" if usage.cost is None else figures.dollars(usage.cost),
    )
