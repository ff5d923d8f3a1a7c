"""Find results of file reads that are out of date, and files that are being edited."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.messages import Ending, Json, ToolCall

_READS = frozenset({"read_file"})
_WHOLE_WRITES = frozenset({"write_file", "move_file", "delete_file"})
_WRITES = _WHOLE_WRITES | {"edit_file", "multi_edit"}
_PATHS = ("path", "to")  # the arguments that name the files


@dataclass(frozen=True, slots=True)
class FileUse:
    """Record one successful read or write of a file.

    `index` is that of its result, `lines` the range that was read. `is_whole` says that it read or
    wrote the whole file.
    """

    path: str
    index: int
    turn: int
    writes: bool
    lines: tuple[Json, Json] = (None, None)
    is_whole: bool = False


def is_read(item: PromptItem) -> bool:
    """Return whether the item is the result of reading a file."""
    return item.normalized.tool in _READS


def file_uses(turns: Sequence[Sequence[PromptItem]], first: int = 0) -> list[FileUse]:
    """The reads and writes in `turns`, oldest first; `first` is the number of the first of them."""
    uses: list[FileUse] = []
    for turn_index, turn in enumerate(turns, first):
        calls: dict[str, ToolCall] = {}
        for item in turn:
            for call in item.message.tool_calls:
                calls[call.id] = call
            if item.message.role == "tool":
                uses += _uses(calls.get(item.message.tool_call_id or ""), item, turn_index)
    return uses


def stale_reads(uses: Iterable[FileUse]) -> set[int]:
    """Return the indexes of reads whose file was later written, or read again over the same lines or whole.

    Those of `reads_of_edited_files` may be among them.
    """
    last_write: dict[str, int] = {}
    read_again: dict[tuple[str, Json, Json], int] = {}
    uses = list(uses)
    for use in uses:
        if use.writes:
            last_write[use.path] = use.index
        else:
            read_again[(use.path, *use.lines)] = use.index
    return {
        use.index
        for use in uses
        if not use.writes
        and (
            last_write.get(use.path, -1) > use.index
            or read_again[(use.path, *use.lines)] > use.index
            or read_again.get((use.path, None, None), -1) > use.index
        )
    }


def reads_of_edited_files(uses: Iterable[FileUse], since_turn: int) -> set[int]:
    """Return message indexes: for each file written in `since_turn` or later, that of its newest read.

    A read counts until the whole file is written: what was edited is still known by it.
    """
    uses = list(uses)
    edited = {use.path for use in uses if use.writes and use.turn >= since_turn}
    newest: dict[str, int] = {}
    for use in uses:
        if not use.writes and use.path in edited:
            newest[use.path] = use.index
        elif use.writes and use.is_whole:
            newest.pop(use.path, None)
    return set(newest.values())


def _uses(call: ToolCall | None, result: PromptItem, turn: int) -> list[FileUse]:
    """Return the files that a call read or wrote, two for a move; a write that failed wrote none."""
    if call is None or call.name not in _READS | _WRITES:
        return []
    writes = call.name in _WRITES
    if writes and result.message.ending is not Ending.COMPLETE:
        return []
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return []
    if not isinstance(arguments, Mapping):
        return []
    named = [arguments.get(key) for key in (_PATHS if call.name == "move_file" else _PATHS[:1])]
    lines = (_plain(arguments.get("start")), _plain(arguments.get("end")))
    is_whole = call.name in _WHOLE_WRITES if writes else lines == (None, None)
    return [
        FileUse(path, result.index, turn, writes, lines, is_whole) for path in named if isinstance(path, str)
    ]


def _plain(value: Json) -> Json:
    """Something to compare by: what is no number or text is still another range than the whole file."""
    return value if value is None or isinstance(value, (int, str)) else repr(value)
