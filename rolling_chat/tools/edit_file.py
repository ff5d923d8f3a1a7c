"""edit_file and multi_edit: replace text in a file, found by its contents and not by line numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_flag, read_text
from rolling_chat.tools.confine import relative_name, resolve_inside
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.tools.file_changes import FileChange, FileVersion, read_version
from rolling_chat.tools.file_text import read_file_text
from rolling_chat.tools.matching import find_spans

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class EditFile:
    """The tool `edit_file(path, old, new, all)`."""

    name: str = "edit_file"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Replace `old`, copied exactly from the file and unique in it, by `new`; with `all` everywhere.",
            {"path": _TEXT, "old": _TEXT, "new": _TEXT, "all": _FLAG},
            required=("path", "old", "new"),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the file that would be edited."""
        return f"{self.name} {arguments.get('path')}"

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that the call would make. Raises ToolError, which names similar lines."""
        return _prepared(arguments, [_Edit.of(arguments)], context)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Edit the file."""
        return await asyncio.to_thread(lambda: self.prepare(arguments, context).make(context))


@dataclass(frozen=True, slots=True)
class MultiEdit:
    """The tool `multi_edit(path, edits)`, which makes all of several edits of one file, or none."""

    name: str = "multi_edit"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        edit = {"type": "object", "properties": {"old": _TEXT, "new": _TEXT, "all": _FLAG}}
        return function_schema(
            self.name,
            "Make several edits of one file, all or none, each on the result of the one before.",
            {"path": _TEXT, "edits": {"type": "array", "items": edit}},
            required=("path", "edits"),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the file that would be edited."""
        return f"{self.name} {arguments.get('path')}"

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that all edits together would make. Raises ToolError, which names the edit."""
        given = arguments.get("edits")
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise ToolError("The argument 'edits' must be a list of objects with 'old' and 'new'.")
        edits = []
        for number, one in enumerate(given, start=1):
            if not isinstance(one, dict):
                raise ToolError(f"Edit {number} must be an object with 'old' and 'new'.")
            edits.append(_Edit.of(one, f"Edit {number} of {len(given)}: "))
        return _prepared(arguments, edits, context)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Edit the file."""
        return await asyncio.to_thread(lambda: self.prepare(arguments, context).make(context))


@dataclass(frozen=True, slots=True)
class _Edit:
    old: str
    new: str
    all: bool
    label: str = ""  # name the edit before the fault

    @classmethod
    def of(cls, arguments: JsonObject, label: str = "") -> _Edit:
        new = arguments.get("new")
        if not isinstance(new, str):
            raise ToolError(f"{label}The argument 'new' is missing: give it as text, empty to delete `old`.")
        old = arguments.get("old")
        if not isinstance(old, str) or not old:
            raise ToolError(
                f"{label}The argument 'old' is missing: give the text to replace. write_file makes new files."
            )
        return cls(old, new, read_flag(arguments, "all"), label)


def _prepared(arguments: JsonObject, edits: Sequence[_Edit], context: ToolContext) -> PreparedEdit:
    path = resolve_inside(read_text(arguments, "path"), context)
    name = relative_name(path, context)
    before = _existing(path, name, context)
    data, count = before.data, 0
    for edit in edits:
        try:
            file = read_file_text(data, name)
            spans = find_spans(file, edit.old, name, all_of_them=edit.all)
            data = file.replaced(spans, edit.new)
        except ToolError as error:
            raise ToolError(f"{edit.label}{error}") from None
        count += len(spans)
    if data == before.data:
        raise ToolError(f"Nothing would change in {name}: `old` and `new` are the same.")
    change = FileChange(path, before, before.rewritten(data))
    places = "" if count == 1 else f" in {count:,} places"
    is_known = context.knows(path, before.sha256)
    return PreparedEdit((change,), f"Edited {name}{places}", context.folder.resolve(), is_known)


def _existing(path: Path, name: str, context: ToolContext) -> FileVersion:
    before = read_version(path, context, writable=True)
    if before is None:
        raise ToolError(f"There is no {name}; write_file makes a new file.")
    return before
