"""Tools that change files: each prepares its change, so that it can be shown, and then makes exactly that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from rolling_chat.messages import FileTouch, JsonObject
from rolling_chat.permissions.path_patterns import is_protected
from rolling_chat.tools.base import Tool, ToolContext, ToolResult
from rolling_chat.tools.diffs import count_of, diff_of
from rolling_chat.tools.file_changes import FileChange, apply_changes


@dataclass(frozen=True)
class PreparedEdit:
    """A change of files that was not made yet; `told` is what the model reads once it is made."""

    changes: tuple[FileChange, ...]
    told: str
    folder: Path

    @cached_property
    def diff(self) -> str:
        """The whole change as a unified diff: what the question shows is exactly what is made.

        Raises ToolError for a diff that is too long to be shown.
        """
        return diff_of(self.changes, self.folder)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change, relative to the working folder."""
        return tuple(change.path.relative_to(self.folder).as_posix() for change in self.changes)

    @property
    def is_protected(self) -> bool:
        """Whether a path is among those that decide what runs by itself."""
        return any(map(is_protected, self.paths))

    def make(self, context: ToolContext) -> ToolResult:
        """Make the change. Raises ToolError where nothing could be changed."""
        files: tuple[FileTouch, ...] = apply_changes(self.changes, context)
        told = ": ".join(filter(None, (self.told, count_of(self.changes))))
        return ToolResult(told, files=files, shown=self.diff)


@runtime_checkable
class EditingTool(Tool, Protocol):
    """A tool that changes files."""

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that a call would make; reads files. Raises ToolError."""
        ...
