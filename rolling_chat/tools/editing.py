"""The protocol of tools that change files: they prepare a change, show it, and then make exactly that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from rolling_chat.messages import GONE, FileTouch, JsonObject
from rolling_chat.permissions.path_patterns import is_protected, lies_in
from rolling_chat.tools.base import Tool, ToolContext, ToolResult
from rolling_chat.tools.diffs import count_of, diff_of
from rolling_chat.tools.file_changes import FileChange, apply_changes
from rolling_chat.tools.sandbox.sandbox import NEWCOMERS


@dataclass(frozen=True)
class PreparedEdit:
    """A change of files that has not been made yet; `line` is the result for the model.

    `is_known`: the model then knows the whole contents of the files.
    """

    changes: tuple[FileChange, ...]
    line: str
    folder: Path
    is_known: bool = True

    @cached_property
    def diff(self) -> str:
        """The whole change as a unified diff, which the permission question shows.

        Raises ToolError if the diff is too long to be shown.
        """
        return diff_of(self.changes, self.folder)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change, relative to the working folder."""
        return tuple(change.path.relative_to(self.folder).as_posix() for change in self.changes)

    def exact_only(self, own: Iterable[Path]) -> tuple[str, ...]:
        """Return those of `paths` that no rule with a star may allow, because they are in one of `own`.

        The same applies to paths that are protected only by the location of the working folder, which may be
        inside `.git`.
        """
        folders = [path.as_posix() for path in own]
        whole = [change.path.as_posix() for change in self.changes]
        return tuple(
            path
            for path, named in zip(self.paths, whole, strict=True)
            if (is_protected(named) and not is_protected(path))
            or any(lies_in(named, folder) for folder in folders)
        )

    def make(self, context: ToolContext) -> ToolResult:
        """Make the change. Raises ToolError if nothing could be changed."""
        for change in self.changes:
            NEWCOMERS.spare(change.path)
        files = tuple(map(self._as_known, apply_changes(self.changes, context)))
        text = ": ".join(filter(None, (self.line, count_of(self.changes))))
        return ToolResult(text, files=files, shown=self.diff)

    def _as_known(self, touch: FileTouch) -> FileTouch:
        is_known = self.is_known or touch.sha256 == GONE
        return touch if is_known else replace(touch, action="written in part")


@runtime_checkable
class EditingTool(Tool, Protocol):
    """A tool that changes files."""

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that a call would make, reading files. Raises ToolError."""
        ...
