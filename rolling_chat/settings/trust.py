"""Decide which of a project's own files (`project_files.py`) take effect.

None of them is read before the user trusts it. Instructions are trusted by their path, all others by their
contents: the user is asked again when these change.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rolling_chat.confined_files import read_inside
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.folders import FolderRecord, TrustedContent, change_record, read_record
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.project_files import FileKind, ProjectFile, ProjectFiles
from rolling_chat.text import exact, printable

MAX_BYTES = 1_000_000
"""The maximum size of a file trusted by its contents; one more byte is read to detect a longer one."""

_MAX_SHOWN = 200_000  # bytes of an instruction file
_MAX_NAMED = 6  # files in the line about unread ones


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file that is trusted by its contents, with these contents; `name` is its path below the root."""

    path: Path
    name: str
    data: bytes


class FolderTrust:
    """Decides by the user's answers which files of one working folder are read.

    They are those of the folder itself and of its parents, up to the root of the repository. With
    `everything`, all of them are read, by the user's choice for this run or in the settings.
    """

    def __init__(self, folder: Path, paths: Paths, *, everything: bool = False) -> None:
        self.folder = folder.resolve()
        self.root = find_root(self.folder)
        self.everything = everything
        self.problem = ""  # why the answers cannot be read
        self._paths = paths
        self._project = ProjectFiles(self.folder, self.root, paths)
        self._read_data: dict[str, bytes] = {}  # of files trusted by contents, by name; each is read once
        self._shown_data: dict[str, bytes] = {}  # shown to the user last, by name
        self._record = self._load()

    def settings(self) -> TrustedFile | None:
        """Return the folder's own settings file; None if there is none or its contents are not trusted."""
        return next(iter(self.contents(FileKind.SETTINGS)), None)

    def instructions(self) -> tuple[ProjectFile, ...]:
        """Return the trusted instruction files, from the root down."""
        return tuple(filter(self._is_trusted, self._project.of(FileKind.INSTRUCTIONS)))

    def contents(self, kind: FileKind) -> tuple[TrustedFile, ...]:
        """Return the files of a kind that are trusted, with their contents, from the root down."""
        files = filter(self._is_trusted, self._project.of(kind))
        return tuple(TrustedFile(file.path, file.name, self._content(file)) for file in files)

    def look_again(self) -> None:
        """Read the files that may change during a run again; all others stay as they were read."""
        again = {file.name for file in self._project.find() if file.kind.is_reread}
        self._read_data = {name: data for name, data in self._read_data.items() if name not in again}

    def unread(self) -> tuple[ProjectFile, ...]:
        """Return the files that are not read because they are not trusted."""
        return tuple(file for file in self._project.find() if not self._is_trusted(file))

    def trusted(self) -> tuple[ProjectFile, ...]:
        """Return the trusted files."""
        return tuple(filter(self._is_trusted, self._project.find()))

    def undecided(self) -> tuple[ProjectFile, ...]:
        """Return the unread files that the user was not asked about, or that have changed since."""
        return tuple(
            file for file in self.unread() if file.name not in self._record.refused or self.has_changed(file)
        )

    def trust(self, files: Sequence[ProjectFile]) -> None:
        """Trust files from now on, by contents with those last `shown`. Raises SettingsError."""
        self._read_data.update(self._shown_data)
        contents = {file.name: TrustedContent.of(self._content(file)) for file in files if file.by_content}
        names = [file.name for file in files if not file.by_content]

        def trusting(record: FolderRecord) -> FolderRecord:
            return replace(
                record,
                instructions=_united(record.instructions, names),
                contents={**record.contents, **contents},
                refused=tuple(name for name in record.refused if name not in {*names, *contents}),
            )

        self._record = change_record(self._paths, self.root, trusting)

    def trust_written(self, path: Path) -> None:
        """Trust an instruction file that was written with the user's approval. Raises SettingsError."""
        self.trust([file for file in self._project.of(FileKind.INSTRUCTIONS) if file.path == path])

    def refuse(self, files: Sequence[ProjectFile]) -> None:
        """Do not trust files any more, and do not ask about them again. Raises SettingsError."""
        names = [file.name for file in files]

        def refusing(record: FolderRecord) -> FolderRecord:
            return replace(
                record,
                instructions=tuple(name for name in record.instructions if name not in names),
                contents={name: known for name, known in record.contents.items() if name not in names},
                refused=_united(record.refused, names),
            )

        self._record = change_record(self._paths, self.root, refusing)
        self.everything = False

    def has_changed(self, file: ProjectFile) -> bool:
        """Return whether an untrusted file was trusted with earlier contents."""
        return file.by_content and file.name in self._record.contents

    def shown(self, files: Sequence[ProjectFile]) -> str:
        """Return the contents of files for the user to read, or the changes of files that were trusted."""
        self._shown_data = {file.name: self._content(file) for file in files if file.by_content}
        return "\n".join(self._shown(file) for file in files)

    @property
    def line(self) -> str:
        """One line that names the files that are not read; empty if there are none."""
        unread = self.unread()
        if not unread:
            return ""
        names = [printable(file.name, 80) for file in unread[:_MAX_NAMED]]
        if len(unread) > _MAX_NAMED:
            names.append(f"and {len(unread) - _MAX_NAMED} more")
        return f"Not read: {', '.join(names)} (this folder is not trusted: /trust, or --trust for one run)."

    def _load(self) -> FolderRecord:
        try:
            return read_record(self._paths, self.root)
        except SettingsError as error:
            self.problem = str(error)
            return FolderRecord()

    def _is_trusted(self, file: ProjectFile) -> bool:
        if self.everything:
            return True
        if not file.by_content:
            return file.name in self._record.instructions
        known = self._record.contents.get(file.name)
        return known is not None and hashlib.sha256(self._content(file)).hexdigest() == known.sha256

    def _content(self, file: ProjectFile) -> bytes:
        """Return a file's bytes, read only once, so that the bytes that were shown or compared are used."""
        if file.name not in self._read_data:
            try:
                self._read_data[file.name] = read_inside(file.path, self.root, MAX_BYTES + 1)
            except OSError:
                self._read_data[file.name] = b""
        return self._read_data[file.name]

    def _shown(self, file: ProjectFile) -> str:
        name = exact(file.name)
        if not file.by_content:
            try:
                data = read_inside(file.path, self.root, _MAX_SHOWN)
            except OSError as error:
                return f"── {name}\n\n({error.strerror or error})\n"
            return f"── {name}\n\n{data.decode('utf-8', errors='replace')}\n"
        now = TrustedContent.of(self._content(file))
        known = self._record.contents.get(file.name)
        if known is None or known == now:
            return f"── {name}\n\n{now.text}\n"
        changed = difflib.unified_diff(
            known.text.splitlines(), now.text.splitlines(), "as you trusted it", "as it is now", lineterm=""
        )
        lines = list(changed) or ["(only in characters that cannot be shown)"]
        return "\n".join([f"── {name} has changed", "", *lines, ""])


def find_root(folder: Path) -> Path:
    """Return the root of the repository that contains a resolved folder, or the folder itself."""
    for parent in (folder, *folder.parents):
        try:
            if (parent / ".git").exists():
                return parent
        except OSError:  # an inaccessible parent folder
            break
    return folder


def _united(before: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *more)))
