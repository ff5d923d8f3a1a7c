"""`rolling-chat inspect`: list the requests of a session, or show one, built again from the store."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from rolling_chat.agent.request.rebuild import RebuiltRequest, rebuild_request
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import has_saved, open_saved
from rolling_chat.context.report import PromptReport, Row
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.sessions.ids import is_id
from rolling_chat.sessions.records import (
    RequestRecord,
    SessionAmbiguous,
    SessionInfo,
    SessionNotFound,
    StoreError,
)
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rich.table import Table

_NTH_OF_SESSION = re.compile(r"([\w-]+):(\d{1,9})")
_REQUEST = re.compile(r"q[0-9a-f]{0,18}", re.IGNORECASE)
_MESSAGE = re.compile(r"r\d+", re.IGNORECASE)
_FILE_WIDTH = 200  # of tables written to a file or pipe, which need not fit a screen
_PREVIEW_CHARS = 60
_NAMED = 5  # requests named in one error line
_SAME = "verified"


def run_inspect(options: Options, paths: Paths) -> int:
    """Print the report of one sent request, or a list of a session's requests.

    With `--verify`, every named request is compared with what was sent. Raises Failure for a request that
    cannot be found or rebuilt, and for a difference.
    """
    if not has_saved(options, paths):
        raise Failure("no request was sent yet: start with rolling-chat", Exit.USAGE)
    store = open_saved(options, paths)
    try:
        found = _find(store, options.request)
        if isinstance(found, RequestRecord):
            return _inspect(rebuild_request(store, found), store.session(found.session_id), options)
        return _list(store, found, options)
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()


def _inspect(rebuilt: RebuiltRequest, session: SessionInfo, options: Options) -> int:
    if options.json:
        # ASCII escapes keep every control sequence out of stdout
        print(json.dumps(_as_json(rebuilt), indent=2, ensure_ascii=True))
    else:
        _print(rebuilt, session)
    if not options.verify:
        return Exit.DONE
    if not rebuilt.is_same:
        sys.stdout.flush()
        raise Failure(_differs(rebuilt))
    if not options.json:
        print(f"verified: the same to the byte ({rebuilt.wire_hash[:16]})")
    return Exit.DONE


def _list(store: SessionStore, session: SessionInfo, options: Options) -> int:
    records = store.requests(session.id)
    checks = [_check(store, record) for record in records] if options.verify else []
    if options.json:
        listed = [{"number": number, **_record_as_json(record)} for number, record in enumerate(records, 1)]
        for row, check in zip(listed, checks, strict=False):
            row["same"] = check == _SAME
        print(json.dumps(listed, indent=2, ensure_ascii=True))
    else:
        _print_list(session, records, checks)
    wrong = [record.short for record, check in zip(records, checks, strict=False) if check != _SAME]
    if wrong:
        sys.stdout.flush()
        count = f"{len(wrong):,} of {len(records):,} requests"
        raise Failure(f"{count} cannot be shown to be what was sent: {', '.join(wrong[:_NAMED])}")
    return Exit.DONE


def _check(store: SessionStore, record: RequestRecord) -> str:
    try:
        return _SAME if rebuild_request(store, record).is_same else "differs"
    except StoreError:
        return "cannot be built again"


def _find(store: SessionStore, name: str) -> RequestRecord | SessionInfo:
    name = name.strip()
    nth = _NTH_OF_SESSION.fullmatch(name)
    try:
        if nth:
            return _nth(store, nth[1], int(nth[2]))
        if _REQUEST.fullmatch(name):
            return store.request(name)
        return _of_id(store, name) if is_id(name) else store.session(name)
    except SessionNotFound as error:
        known = _MESSAGE.fullmatch(name)
        why = (
            f"{one_line(name, 40)} is a message, and requests are named q7b60935b or SESSION:N"
            if known
            else error
        )
        raise Failure(str(why), Exit.USAGE) from error
    except SessionAmbiguous as error:
        raise Failure(str(error), Exit.USAGE) from error
    except StoreError as error:
        raise Failure(f"{error}; SESSION lists its requests, SESSION:N is the N-th", Exit.USAGE) from error


def _of_id(store: SessionStore, id: str) -> RequestRecord | SessionInfo:
    try:
        return store.session(id)
    except SessionNotFound:
        return store.request(id)


def _nth(store: SessionStore, session: str, number: int) -> RequestRecord:
    info = store.session(session)
    records = store.requests(info.id)
    if not 1 <= number <= len(records):
        sent = f"its requests are 1 to {len(records)}" if records else "it sent none"
        raise Failure(f"session {info.short} has no request {number}: {sent}", Exit.USAGE)
    return records[number - 1]


def _differs(rebuilt: RebuiltRequest) -> str:
    record = rebuilt.record
    return (
        f"request {record.short} is not the one that was sent: rebuilt it is {rebuilt.wire_hash[:16]}, "
        f"sent was {record.wire_hash[:16]} (pipeline version {record.pipeline_version})"
    )


def _print(rebuilt: RebuiltRequest, session: SessionInfo) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    for line in _lead(rebuilt, session):
        console.print(Text(line))
    console.print()
    console.print(_categories(rebuilt.report))
    console.print()
    console.print(_messages(rebuilt))


def _lead(rebuilt: RebuiltRequest, session: SessionInfo) -> Iterator[str]:
    record, report = rebuilt.record, rebuilt.report
    purpose = " for a summary" if record.purpose == "summary" else ""
    yield f"request {record.short} of session {session.short}{purpose}, sent {_when(record)}"
    rolling = "on" if report.rolling else "off"
    yield f"{one_line(record.model)}, window {report.window:,} tokens, rolling context {rolling}"
    reported = f"{record.usage.input_tokens:,}" if record.usage.input_tokens else "nothing"
    yield f"estimated {record.estimated:,} tokens, upper bound {record.bound:,}, reported {reported}"
    if record.error:
        yield f"it failed: {one_line(record.error, 300)}"


def _print_list(session: SessionInfo, records: Sequence[RequestRecord], checks: Sequence[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    title = one_line(session.title, _PREVIEW_CHARS) or "(no title)"
    console.print(Text(f"session {session.short}, {title}: {plural(len(records), 'request')}"))
    if not records:
        return
    table = _table(
        ("#", True), ("id", False), ("sent", False), ("model", False), ("for", False),
        ("estimated", True), ("reported", True), ("answer", True), ("seconds", True), ("came to", False),
    )  # fmt: skip
    for number, record in enumerate(records, 1):
        usage, came_to = record.usage, one_line(record.error, _PREVIEW_CHARS) or "answered"
        table.add_row(
            str(number), record.short, _when(record), Text(one_line(record.model, 40)), record.purpose,
            f"{record.estimated:,}", _known(usage.input_tokens), _known(usage.output_tokens),
            f"{record.seconds:.1f}", Text(", ".join((came_to, *checks[number - 1 : number]))),
        )  # fmt: skip
    console.print()
    console.print(table)


def _known(tokens: int) -> str:
    """Format a reported count; 0 means unknown."""
    return f"{tokens:,}" if tokens else "unknown"


def _when(record: RequestRecord) -> str:
    return f"{datetime.fromtimestamp(record.created_at).astimezone():%Y-%m-%d %H:%M:%S}"


def _categories(report: PromptReport) -> Table:
    table = _table(("category", False), ("tokens", True), ("of window", True))
    sizes = report.totals()["categories"]
    for name, tokens in sizes.items():
        table.add_row(name, f"{tokens:,}", f"{100 * tokens / report.window:.1f} %" if report.window else "")
    return table


def _messages(rebuilt: RebuiltRequest) -> Table:
    from rich.text import Text

    table = _table(
        ("id", True), ("role", False), ("fate", False), ("layer", False),
        ("before", True), ("after", True), ("reason", False),
    )  # fmt: skip
    for row in rebuilt.report.rows:
        table.add_row(
            _name(row), row.role, row.fate.word, row.layer,
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
    return {
        **_record_as_json(rebuilt.record),
        "session": rebuilt.record.session_id,
        "rebuilt_hash": rebuilt.wire_hash,
        "same": rebuilt.is_same,
        **rebuilt.report.totals(),
        "messages": [_row_as_json(row) for row in rebuilt.report.rows],
    }


def _record_as_json(record: RequestRecord) -> dict[str, Json]:
    return {
        "id": record.id,
        "short": record.short,
        "purpose": record.purpose,
        "created_at": record.created_at,
        "model": record.model,
        "estimated": record.estimated,
        "bound": record.bound,
        "reported": asdict(record.usage),
        "seconds": record.seconds,
        "error": record.error,
        "wire_hash": record.wire_hash,
    }


def _name(row: Row) -> str:
    """Return a message's name in recall, `/context` and `/pin`."""
    return f"r{row.index}"


def _row_as_json(row: Row) -> dict[str, Json]:
    return {
        "index": row.index,
        "id": _name(row),
        "role": row.role,
        "fate": row.fate.value,
        "layer": row.layer,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "reason": row.reason,
    }
