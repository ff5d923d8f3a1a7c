"""Taking files back with the conversation: what a move of the head means for the files that tools changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.records import KeptChange, KeptVersion
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.diffs import diff_of
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.tools.file_changes import FileChange, FileVersion, apply_changes, locate, read_version


@dataclass(frozen=True, slots=True)
class FileMove:
    """The changes of files that go with a move of the head.

    `left` are lines about files that stay as they are: somebody else changed them, or their contents are no
    longer kept. `folders` become empty and are removed, the innermost first.
    """

    changes: tuple[FileChange, ...] = ()
    left: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether no file would change, and none is left."""
        return not self.changes and not self.left


@dataclass(frozen=True, slots=True)
class FileUndo:
    """Undoes and redoes changes of files in the working folder, by what the store has kept of them."""

    kept: KeptFiles
    session_id: str
    context: ToolContext

    def move(self, here: Collection[str], there: Collection[str]) -> FileMove:
        """Return what a move between two branches, given by their message ids, means for files."""
        changes = self.kept.of_session(self.session_id)
        undone = [one for one in changes if one.message_id in here and one.message_id not in there]
        redone = [one for one in changes if one.message_id in there and one.message_id not in here]
        moved: list[FileChange] = []
        left: list[str] = []
        for path in dict.fromkeys(one.path for one in (*undone, *redone)):
            expected, wanted = _ends_of(path, undone, redone)
            try:
                change = self._change(Path(path), expected, wanted)
            except ToolError as error:
                left.append(str(error))
            else:
                moved += [change] if change is not None else []
        folders = [Path(folder) for one in reversed(undone) for folder in reversed(one.folders)]
        return FileMove(tuple(moved), tuple(left), tuple(dict.fromkeys(folders)))

    def make(self, move: FileMove) -> None:
        """Change the files. Raises ToolError if one cannot be changed; then none is."""
        apply_changes(move.changes, self.context)
        for folder in move.folders:
            try:
                folder.rmdir()
            except OSError:  # not empty, or gone: somebody else's by now
                continue

    def diff(self, here: Collection[str]) -> str:
        """Return what the tools changed on a branch, beside what is on disk now, as one diff."""
        changes: list[FileChange] = []
        folder = self.context.folder.resolve()
        kept = [one for one in self.kept.of_session(self.session_id) if one.message_id in here]
        for path in dict.fromkeys(one.path for one in kept):
            first = next(one for one in kept if one.path == path)
            try:
                now = self._on_disk(Path(path))
                before = self._version(first.before, Path(path))
            except ToolError:
                continue
            if before != now:
                changes.append(FileChange(Path(path), before, now))
        return diff_of(changes, folder)

    def _change(
        self, path: Path, expected: Sequence[KeptVersion | None], wanted: KeptVersion | None
    ) -> FileChange | None:
        """Return the change to what is wanted; None if it is there. Raises ToolError if something else is."""
        now = self._on_disk(path)
        if _is(now, wanted):
            return None
        if not any(_is(now, one) for one in expected):
            raise ToolError(f"{self._name(path)} is left as it is: somebody else changed it since.")
        return FileChange(path, now, self._version(wanted, path))

    def _on_disk(self, path: Path) -> FileVersion | None:
        # the folder may have become a link since: then it is another file
        if locate(str(path), self.context) != path:
            raise ToolError(f"{self._name(path)} is left as it is: its folder is now a link.")
        return read_version(path, self.context)

    def _version(self, kept: KeptVersion | None, path: Path) -> FileVersion | None:
        if kept is None:
            return None
        data = self.kept.content(kept.sha256)
        if data is None:
            raise ToolError(f"{self._name(path)} is left as it is: what it held is no longer kept.")
        return FileVersion(data, kept.mode, kept.is_link)

    def _name(self, path: Path) -> str:
        folder = self.context.folder.resolve()
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def keep_edit(kept: KeptFiles, reply_id: str, edit: PreparedEdit) -> Callable[[], None]:
    """Store an edit that is about to be made; return what forgets it again if it was not made."""
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


def _ends_of(
    path: str, undone: Sequence[KeptChange], redone: Sequence[KeptChange]
) -> tuple[Sequence[KeptVersion | None], KeptVersion | None]:
    """Return what a file may be now, and what it is to become.

    It is as its last change left it or, if the process died just before making that, as it found it.
    """
    back = [one for one in undone if one.path == path]
    forth = [one for one in redone if one.path == path]
    expected = (back[-1].after, back[-1].before) if back else (forth[0].before,)
    wanted = forth[-1].after if forth else back[0].before
    return expected, wanted


def _is(now: FileVersion | None, kept: KeptVersion | None) -> bool:
    if now is None or kept is None:
        return now is None and kept is None
    is_same_mode = kept.mode is None or kept.mode == now.mode
    return now.is_link == kept.is_link and is_same_mode and now.sha256 == kept.sha256


def _kept(version: FileVersion | None) -> KeptVersion | None:
    return None if version is None else KeptVersion(version.sha256, version.mode, version.is_link)


def _missing_folders(folder: Path, root: Path) -> Iterable[Path]:
    missing: list[Path] = []
    while folder != root and not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return reversed(missing)
