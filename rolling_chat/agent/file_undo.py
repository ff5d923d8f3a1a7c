"""Undo and redo the file changes of tools when the head of the conversation moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.records import KeptChange, KeptVersion
from rolling_chat.text import printable
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.diffs import diff_of
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.tools.file_changes import (
    FileChange,
    FileVersion,
    apply_changes,
    locate,
    read_version,
    remove_folders,
)

_RIGHTS = 0o777  # other bits are not restored, because no write keeps them
_CHANGED = "somebody else changed it"
_NOT_KEPT = "what it held is no longer kept"
_ELSEWHERE = "it is not in this folder"


@dataclass(frozen=True, slots=True)
class FileMove:
    """The file changes for a move of the head.

    `left` are lines about files that are not changed, because somebody else changed them or their contents
    are no longer kept. `folders` are removed if they become empty, innermost first.
    """

    changes: tuple[FileChange, ...] = ()
    left: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether no file would change, and there is nothing to report."""
        return not self.changes and not self.left


@dataclass(slots=True)
class _Path:
    """The changes of one path to undo and redo, and the resulting change, or the `reason` for none."""

    path: Path
    undone: list[KeptChange] = field(default_factory=list)
    redone: list[KeptChange] = field(default_factory=list)
    change: FileChange | None = None
    reason: str = ""

    @property
    def wanted(self) -> KeptVersion | None:
        return self.redone[-1].after if self.redone else self.undone[0].before

    @property
    def expected(self) -> tuple[KeptVersion | None, ...]:
        """What the path may contain: the result of its last change, or the original if the process died."""
        if self.undone:
            return self.undone[-1].after, self.undone[-1].before
        return (self.redone[0].before,)

    @property
    def has_gap(self) -> bool:
        """Whether somebody else changed the file between two of the changes, which would be lost.

        There is no gap if both started from the same contents: the process died before it made the first.
        """
        pairs = [*pairwise(self.undone), *pairwise(self.redone)]
        is_other_start = bool(self.undone and self.redone) and not _equal(
            self.undone[0].before, self.redone[0].before
        )
        return is_other_start or any(
            not _equal(one.after, other.before) and not _equal(one.before, other.before)
            for one, other in pairs
        )


@dataclass(frozen=True, slots=True)
class FileUndo:
    """Undoes and redoes changes of files in the working folder, with the contents kept in the store.

    It reads and writes files: call it from a thread.
    """

    kept: KeptFiles
    context: ToolContext

    def move(self, here: str, there: str) -> FileMove:
        """Return the file changes for a move between two messages; an empty id is before the first."""
        ours, theirs = self.kept.of_branch(here), self.kept.of_branch(there)
        known, others = {one.number for one in ours}, {one.number for one in theirs}
        undone = [one for one in ours if one.number not in others]
        redone = [one for one in theirs if one.number not in known]
        paths: dict[str, _Path] = {}
        for one in undone:
            paths.setdefault(one.path, _Path(Path(one.path))).undone.append(one)
        for one in redone:
            paths.setdefault(one.path, _Path(Path(one.path))).redone.append(one)
        for path in paths.values():
            self._examine(path)
        _leave_together(paths, (*undone, *redone))
        made = [path for path in paths.values() if path.change is not None and not path.reason]
        folders = [Path(folder) for path in made for one in path.undone for folder in one.folders]
        innermost = sorted(dict.fromkeys(folders), key=lambda folder: -len(folder.parts))
        left = tuple(
            f"{self._name(path.path)} is left as it is: {path.reason}."
            for path in paths.values()
            if path.reason
        )
        return FileMove(
            tuple(path.change for path in made if path.change is not None), left, tuple(innermost)
        )

    def make(self, move: FileMove) -> None:
        """Change the files, all or none. Raises ToolError."""
        for change in move.changes:
            if change.after is None and change.before is not None and change.before.mode is not None:
                # a redo restores the file with the mode that the user has given it since
                self.kept.keep_mode(str(change.path), change.before.sha256, change.before.mode)
        apply_changes(move.changes, self.context)
        remove_folders(move.folders, self.context)

    def diff(self, here: str) -> str:
        """Return a diff from the files before the tools' changes on a message's branch to those on disk."""
        folder = self.context.folder.resolve()
        firsts: dict[str, KeptChange] = {}
        for one in self.kept.of_branch(here):
            firsts.setdefault(one.path, one)
        parts: list[str] = []
        for path, first in firsts.items():
            try:
                now, before = self._on_disk(Path(path)), self._version(first.before)
                if before != now:
                    parts.append(diff_of([FileChange(Path(path), before, now)], folder))
            except ToolError as error:
                parts.append(f"{self._name(Path(path))} cannot be compared: {error}")
        return "\n".join(parts)

    def _examine(self, path: _Path) -> None:
        """Set the change that a path needs, if any, or the reason to leave it as it is."""
        try:
            now = self._on_disk(path.path)
            if _is(now, path.wanted):
                return
            if path.has_gap or not any(_is(now, one) for one in path.expected):
                path.reason = f"{_CHANGED} since"
                return
            path.change = FileChange(path.path, now, self._version(path.wanted))
        except ToolError as error:
            path.reason = str(error)

    def _on_disk(self, path: Path) -> FileVersion | None:
        # the folder may have become a link since, so that this is another file
        try:
            is_there = locate(str(path), self.context) == path
        except ToolError:
            is_there = False
        if not is_there:
            raise ToolError(_ELSEWHERE)
        return read_version(path, self.context)

    def _version(self, kept: KeptVersion | None) -> FileVersion | None:
        if kept is None:
            return None
        data = self.kept.content(kept.sha256)
        if data is None:
            raise ToolError(_NOT_KEPT)
        return FileVersion(data, kept.mode, kept.is_link)

    def _name(self, path: Path) -> str:
        folder = self.context.folder.resolve()
        return printable(str(path.relative_to(folder) if path.is_relative_to(folder) else path), 200)


def keep_edit(kept: KeptFiles, reply_id: str, edit: PreparedEdit) -> Callable[[], None]:
    """Store an edit that is about to be made; return a function that deletes it if it was not made."""
    versions = [version for change in edit.changes for version in (change.before, change.after)]
    changes = [
        KeptChange(
            reply_id,
            str(change.path),
            _kept(change.before),
            _kept(change.after),
            tuple(map(str, _missing_folders(change.path.parent, edit.folder))),
        )
        for change in edit.changes
    ]
    kept.keep(changes, [version.data for version in versions if version is not None])
    return lambda: kept.drop(changes)


def _leave_together(paths: dict[str, _Path], changes: Sequence[KeptChange]) -> None:
    """Leave all paths of a call if one is left: half of a move would duplicate or lose a file."""
    calls: dict[int, set[str]] = {}
    for one in changes:
        calls.setdefault(one.first, set()).add(one.path)
    is_stable = False
    while not is_stable:
        is_stable = True
        for together in calls.values():
            left = next((path for path in together if paths[path].reason), "")
            for path in together if left else ():
                if not paths[path].reason and paths[path].change is not None:
                    paths[path].reason = f"it was moved with {Path(left).name}, which is left"
                    is_stable = False


def _equal(one: KeptVersion | None, other: KeptVersion | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return one.sha256 == other.sha256 and one.is_link == other.is_link


def _is(now: FileVersion | None, kept: KeptVersion | None) -> bool:
    if now is None or kept is None:
        return now is None and kept is None
    is_same_mode = kept.mode is None or now.mode is None or kept.mode & _RIGHTS == now.mode & _RIGHTS
    return now.is_link == kept.is_link and is_same_mode and now.sha256 == kept.sha256


def _kept(version: FileVersion | None) -> KeptVersion | None:
    return None if version is None else KeptVersion(version.sha256, version.mode, version.is_link)


def _missing_folders(folder: Path, root: Path) -> Iterable[Path]:
    missing: list[Path] = []
    while folder != root and not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return reversed(missing)
