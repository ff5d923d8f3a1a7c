"""Classify the tool calls of a conversation: which file was read or written, folder listed or command run.

Tools are recognized by names and arguments: this program's own, and similar ones of other agents. A call of
any other tool is only recognized when it is repeated.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.context.report import Fate
from rolling_chat.messages import Ending, JsonObject, Message, ToolCall


class Effect(Enum):
    """What a call does to files."""

    READ = auto()
    WRITE = auto()
    EDIT = auto()
    MOVE = auto()
    DELETE = auto()
    LIST = auto()
    RUN = auto()
    OTHER = auto()


_TOOLS: Mapping[Effect, frozenset[str]] = {
    effect: frozenset(names.split())
    for effect, names in {
        Effect.READ: "read_file read view view_file open_file read_text_file cat",
        Effect.WRITE: "write_file write create_file create save_file",
        Effect.EDIT: "edit_file edit multi_edit multiedit str_replace replace insert replace_in_file",
        Effect.MOVE: "move_file rename_file",
        Effect.DELETE: "delete_file remove_file",
        Effect.LIST: "list_files list_directory list_dir ls glob directory_tree tree",
        Effect.RUN: "run_command bash execute_bash shell run_shell_command execute_command run_terminal_cmd",
    }.items()
}
_EFFECTS = {name: effect for effect, names in _TOOLS.items() for name in names}
_PATHS = ("path", "file_path", "filepath", "filename", "target_file", "file", "directory")
_TARGETS = ("to", "destination", "new_path")
_COMMANDS = ("command", "cmd", "script")
_FIRST_LINES = ("start", "start_line", "offset")
_LAST_LINES = ("end", "end_line")
_END = 1 << 62  # the last line of a file, however long it is

# Errors are reported at the beginning of a result, or in the line on how a command ended.
_EDGE = 200  # characters
_BEGINS_WITH_ERROR = re.compile(r"""\s*(?:\{\s*"error"|(?:error|fatal|traceback)\b)""", re.IGNORECASE)
_EXITED_WITH_ERROR = re.compile(r"exit(?:ed)?(?: with)? (?:status |code )+:? ?[1-9]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One answered call.

    `index` is that of its result. `subject` identifies the call by its arguments, `paths` are the files that
    it names, `lines` the first and the last line that it read. `failed` means that the result is an error,
    `is_cut` that only a part of it is sent.
    """

    tool: str
    effect: Effect
    subject: str
    index: int
    turn: int
    text: str
    paths: tuple[str, ...] = ()
    lines: tuple[int, int] = (1, _END)
    failed: bool = False
    is_cut: bool = False

    @property
    def changes_files(self) -> bool:
        """Whether the call wrote, moved or deleted files."""
        return not self.failed and self.effect in {Effect.WRITE, Effect.EDIT, Effect.MOVE, Effect.DELETE}

    @property
    def replaces_files(self) -> bool:
        """Whether the call left nothing of the previous contents of its files."""
        return self.changes_files and self.effect is not Effect.EDIT


def is_read(item: PromptItem) -> bool:
    """Return whether the item is the result of reading a file."""
    return _EFFECTS.get(item.normalized.tool.lower()) is Effect.READ


def tool_uses(turns: Sequence[Sequence[PromptItem]], first_turn: int = 0) -> list[ToolUse]:
    """Return the answered calls in `turns`, oldest first; `first_turn` is the index of the first turn."""
    uses: list[ToolUse] = []
    for turn_index, turn in enumerate(turns, first_turn):
        calls: dict[str, ToolCall] = {}
        for item in turn:
            for call in item.message.tool_calls:
                calls[call.id] = call
            # a masked result has no content that could supersede another
            if item.message.role != "tool" or item.index < 0 or item.fate is Fate.MASKED:
                continue
            answered = calls.get(item.message.tool_call_id or "")
            if answered is not None:
                uses.append(_use(answered, item, turn_index))
    return uses


def _use(call: ToolCall, item: PromptItem, turn: int) -> ToolUse:
    arguments = _parse_arguments(call.arguments)
    effect = _effect(call.name, arguments)
    result = item.normalized.message
    return ToolUse(
        tool=call.name,
        effect=effect,
        subject=_subject(effect, arguments),
        index=item.index,
        turn=turn,
        text=result.text,
        paths=tuple(_paths(effect, arguments)),
        lines=_lines(arguments),
        failed=_has_failed(result),
        is_cut=item.message is not item.normalized.message,
    )


def _parse_arguments(arguments: str) -> JsonObject:
    try:
        found = json.loads(arguments or "{}")
        json.dumps(found)  # arguments nested too deeply to be written cannot be compared
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _effect(name: str, arguments: JsonObject) -> Effect:
    name = name.lower()
    if name.startswith("str_replace_") and isinstance(arguments.get("command"), str):
        name = arguments["command"]  # an editor whose one tool has a command for every operation
    return _EFFECTS.get(name, Effect.OTHER)


def _subject(effect: Effect, arguments: JsonObject) -> str:
    """Return the identity of a call: its command or its arguments; a command's timeout is not part of it."""
    command = next(_texts(arguments, _COMMANDS), "")
    if effect is Effect.RUN and command:
        return command.strip()
    if not arguments:
        return ""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=True, default=str)


def _paths(effect: Effect, arguments: JsonObject) -> Iterator[str]:
    if effect in {Effect.OTHER, Effect.RUN}:
        return
    found = next(_texts(arguments, _PATHS), "." if effect is Effect.LIST else "")
    if found:
        yield posixpath.normpath(found)
    if effect is Effect.MOVE:
        yield from map(posixpath.normpath, _texts(arguments, _TARGETS))


def _texts(arguments: JsonObject, keys: Sequence[str]) -> Iterator[str]:
    return (value for key in keys if isinstance(value := arguments.get(key), str) and value)


def _lines(arguments: JsonObject) -> tuple[int, int]:
    match arguments.get("view_range"):
        case [int(first), int(last)]:
            return first, last if last >= first else _END
    first = next(_numbers(arguments, _FIRST_LINES), 1)
    limit = next(_numbers(arguments, ("limit",)), 0)
    return first, first + limit - 1 if limit > 0 else next(_numbers(arguments, _LAST_LINES), _END)


def _numbers(arguments: JsonObject, keys: Sequence[str]) -> Iterator[int]:
    values = (arguments.get(key) for key in keys)
    return (value for value in values if isinstance(value, int) and not isinstance(value, bool))


def _has_failed(result: Message) -> bool:
    if result.ending is not Ending.COMPLETE:
        return True
    text = result.text
    return bool(
        _BEGINS_WITH_ERROR.match(text, 0, _EDGE)
        or _EXITED_WITH_ERROR.search(text, max(0, len(text) - _EDGE))
        or _EXITED_WITH_ERROR.search(text, 0, _EDGE)
    )
