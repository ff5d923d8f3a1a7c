"""`rolling-chat inspect`: what one request held, built again from the store."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from rolling_chat.agent.rebuild import RebuiltRequest, rebuild_request
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.opening import open_store
from rolling_chat.cli.options import Options
from rolling_chat.context.report import PromptReport, Row
from rolling_chat.messages import Json
from rolling_chat.sessions.records import RequestRecord, SessionAmbiguous, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rich.table import Table

_NTH_OF_SESSION = re.compile(r"([\w-]+):(\d{1,9})")
_FILE_WIDTH = 200  # a table that goes to a file or a pipe is as wide as it needs to be
_PREVIEW_CHARS = 60


def run_inspect(options: Options, paths: Paths) -> int:
    """Print the report of one request. Raises Failure for one that there is not, or cannot be built."""
    if not paths.database.exists():
        raise Failure("no request was sent yet: start with rolling-chat", Exit.USAGE)
    store = open_store(paths)
    try:
        rebuilt = rebuild_request(store, _find(store, options.request))
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()
    if options.json:
        # ASCII escapes keep every control sequence out of stdout
        print(json.dumps(_as_json(rebuilt), indent=2, ensure_ascii=True))
    else:
        _print(rebuilt)
    if not options.verify:
        return Exit.DONE
    if not rebuilt.is_same:
        sys.stdout.flush()
        raise Failure(_differs(rebuilt))
    if not options.json:
        print(f"verified: the same to the byte ({rebuilt.wire_hash[:16]})")
    return Exit.DONE


def _find(store: SessionStore, name: str) -> RequestRecord:
    nth = _NTH_OF_SESSION.fullmatch(name.strip())
    try:
        return _nth(store, nth[1], int(nth[2])) if nth else store.request(name)
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(str(error), Exit.USAGE) from error
    except StoreError as error:
        raise Failure(f"{error}; SESSION:N is the N-th request of a session", Exit.USAGE) from error


def _nth(store: SessionStore, session: str, number: int) -> RequestRecord:
    info = store.session(session)
    records = store.requests(info.id)
    if not 1 <= number <= len(records):
        sent = f"its requests are 1 to {len(records)}" if records else "it sent none"
        raise Failure(f"session {info.id} has no request {number}: {sent}", Exit.USAGE)
    return records[number - 1]


def _differs(rebuilt: RebuiltRequest) -> str:
    record = rebuilt.record
    return (
        f"request {record.id} is not the one that was sent: rebuilt it is {rebuilt.wire_hash[:16]}, "
        f"sent was {record.wire_hash[:16]} (pipeline version {record.pipeline_version})"
    )


def _print(rebuilt: RebuiltRequest) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    for line in _lead(rebuilt):
        console.print(Text(line))
    console.print()
    console.print(_categories(rebuilt.report))
    console.print()
    console.print(_messages(rebuilt))


def _lead(rebuilt: RebuiltRequest) -> Iterator[str]:
    record, report = rebuilt.record, rebuilt.report
    sent = datetime.fromtimestamp(record.created_at).astimezone()
    purpose = " for a summary" if record.purpose == "summary" else ""
    yield f"request {record.id} of session {record.session_id}{purpose}, sent {sent:%Y-%m-%d %H:%M:%S}"
    rolling = "on" if report.rolling else "off"
    yield f"{one_line(record.model)}, window {report.window:,} tokens, rolling context {rolling}"
    reported = f"{record.usage.input_tokens:,}" if record.usage.input_tokens else "nothing"
    yield f"estimated {record.estimated:,} tokens, upper bound {record.bound:,}, reported {reported}"
    if record.error:
        yield f"it failed: {one_line(record.error, 300)}"


def _categories(report: PromptReport) -> Table:
    table = _table(("category", False), ("tokens", True), ("of window", True))
    sizes = report.totals()["categories"]
    for name, tokens in sizes.items():
        table.add_row(name, f"{tokens:,}", f"{100 * tokens / report.window:.1f} %" if report.window else "")
    return table


def _messages(rebuilt: RebuiltRequest) -> Table:
    from rich.text import Text

    table = _table(
        ("#", True), ("id", False), ("role", False), ("fate", False), ("layer", False),
        ("before", True), ("after", True), ("reason", False),
    )  # fmt: skip
    for row in rebuilt.report.rows:
        table.add_row(
            str(row.index), Text(row.id), row.role, row.fate.value, row.layer,
            f"{row.tokens_before:,}", f"{row.tokens_after:,}", Text(one_line(row.reason, _PREVIEW_CHARS)),
        )  # fmt: skip
    return table


def _table(*columns: tuple[str, bool]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title, is_number in columns:
        table.add_column(title, justify="right" if is_number else "left", no_wrap=True)
    return table


def _as_json(rebuilt: RebuiltRequest) -> dict[str, Json]:
    record = rebuilt.record
    return {
        "id": record.id,
        "session": record.session_id,
        "purpose": record.purpose,
        "created_at": record.created_at,
        "estimated": record.estimated,
        "bound": record.bound,
        "reported": asdict(record.usage),
        "seconds": record.seconds,
        "error": record.error,
        "wire_hash": record.wire_hash,
        "rebuilt_hash": rebuilt.wire_hash,
        "same": rebuilt.is_same,
        **rebuilt.report.totals(),
        "messages": [_row_as_json(row) for row in rebuilt.report.rows],
    }


def _row_as_json(row: Row) -> dict[str, Json]:
    return {
        "index": row.index,
        "id": row.id,
        "role": row.role,
        "fate": row.fate.value,
        "layer": row.layer,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "reason": row.reason,
    }
