"""`rolling-chat doctor --tokens`: the accuracy of token counts, as tables, JSON or a picture."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rolling_chat.agent.token_log import Accuracy, Counted, TokenLog, by_content, by_model, read_token_log
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.picture_file import picture_file, write_picture
from rolling_chat.cli.stored import has_saved, open_saved
from rolling_chat.cli.token_log_picture import draw_token_log, share
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.sessions.records import StoreError
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

_FILE_WIDTH = 200  # of tables written to a file or pipe, which need not fit a screen
_NOTHING = "No request with a token count is stored yet. Send a message to a model first."


def run_token_log(options: Options, paths: Paths) -> int:
    """Print the token log of all saved sessions. Raises Failure."""
    picture = picture_file(options)
    log = _read(options, paths)
    if picture is not None and log.requests:
        write_picture(picture, draw_token_log(log))
    elif picture is not None:
        print(f"rolling-chat: {picture} was not written: there is nothing to draw", file=sys.stderr)
    if options.json:
        # ASCII escapes keep every control sequence out of stdout
        print(json.dumps(_as_json(log), indent=2, ensure_ascii=True))
    elif log.requests:
        _print(log)
    else:
        print(_NOTHING)
    return Exit.DONE


def _read(options: Options, paths: Paths) -> TokenLog:
    if not has_saved(options, paths):
        return TokenLog()
    store = open_saved(options, paths)
    try:
        return read_token_log(store)
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()


def _print(log: TokenLog) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    console.print(Text(_lead(log)))
    console.print()
    console.print(_models(log))
    if log.added:
        console.print(Text("\nWhat was added between two requests:\n"))
        console.print(_contents(log))


def _lead(log: TokenLog) -> str:
    models = len({request.model for request in log.requests})
    text = (
        f"{plural(len(log.requests), 'request')} to {plural(models, 'model')} with a count of the provider's"
    )
    if log.unreported:
        text += f"; {log.unreported:,} without one"
    if log.left_out:
        text += f"; {log.left_out:,} left out, whose count is not that of the prompt"
    return (
        f"{text}.\nOur estimate is a multiple of that count; its median error, and the one that 95 % stay "
        "below, are shares of it. Beyond: counts above our upper bound."
    )


def _models(log: TokenLog) -> Table:
    from rich.text import Text

    table = _table(
        ("model", False), ("requests", False), ("", True), ("estimate", True), ("median", True),
        ("95 %", True), ("beyond", True),
    )  # fmt: skip
    for (model, phase), requests in by_model(log).items():
        beyond = sum(request.is_beyond for request in requests) / len(requests)
        table.add_row(
            Text(one_line(model, 60)), phase.value, f"{len(requests):,}", *_shown(Accuracy.of(requests)),
            share(beyond),
        )  # fmt: skip
    return table


def _contents(log: TokenLog) -> Table:
    table = _table(
        ("content", False), ("times", True), ("tokens", True), ("estimate", True), ("median", True),
        ("95 %", True),
    )  # fmt: skip
    for content, added in by_content(log).items():
        table.add_row(
            content, f"{len(added):,}", f"{sum(one.reported for one in added):,}", *_shown(Accuracy.of(added))
        )
    return table


def _shown(accuracy: Accuracy) -> tuple[str, str, str]:
    return f"× {accuracy.ratio:.3f}", share(accuracy.median), share(accuracy.p95)


def _table(*columns: tuple[str, bool]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title, is_number in columns:
        table.add_column(title, justify="right" if is_number else "left")
    return table


def _bound_ratio(requests: Sequence[Counted]) -> float:
    return sum(request.bound for request in requests) / sum(request.reported for request in requests)


def _as_json(log: TokenLog) -> dict[str, Json]:
    return {
        "models": [
            {
                "model": model,
                "phase": phase.value,
                **asdict(Accuracy.of(requests)),
                "beyond_bound": sum(request.is_beyond for request in requests),
                "bound_ratio": _bound_ratio(requests),
            }
            for (model, phase), requests in by_model(log).items()
        ],
        "contents": [
            {"content": content, **asdict(Accuracy.of(added))} for content, added in by_content(log).items()
        ],
        "requests": [asdict(request) for request in log.requests],
        "unreported": log.unreported,
        "left_out": log.left_out,
    }
