"""Which of a folder's own files take effect: settings and instructions that a project brings along.

None of them is read before the user trusts them. Settings are trusted as they are: another content is asked
about again. Instructions are trusted by their path.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rolling_chat.confined_files import is_file_inside, read_inside
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.folders import FolderRecord, TrustedContent, change_record, read_record
from rolling_chat.settings.paths import Paths
from rolling_chat.text import exact, printable

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first of them that a folder has is read."""
PROJECT_FILE = Path(".rolling-chat") / "config.toml"

_MAX_SETTINGS = 1_000_000  # bytes
_MAX_SHOWN = 200_000  # bytes of an instruction file


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """A project's settings file, as it was read when it was trusted."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file of the folder that would take effect; `name` is its path below the root."""

    path: Path
    name: str
    by_content: bool = False


class FolderTrust:
    """Decides which files of one working folder are read, by what the user answered.

    They are those of the folder itself and of the folders above it, up to the root of the repository.
    With `everything`, all of them are: the user said so for this run, or in the settings.
    """

    def __init__(self, folder: Path, paths: Paths, *, everything: bool = False) -> None:
        self.folder = folder.resolve()
        self.root = find_root(self.folder)
        self.everything = everything
        self.problem = ""  # why the answers cannot be read
        self._paths = paths
        self._read_data: dict[str, bytes] = {}  # of files that are trusted by content, by name: read once
        self._record = self._load()

    def settings(self) -> ProjectSettings | None:
        """Return the folder's own settings file if it is trusted as it is; None otherwise, or without one."""
        file = self._settings_file()
        if file is None or not self._is_trusted(file):
            return None
        return ProjectSettings(file.path, self._content(file))

    def instructions(self) -> tuple[ProjectFile, ...]:
        """Return the instruction files that are trusted, the root's first."""
        return tuple(file for file in self._instruction_files() if self._is_trusted(file))

    def unread(self) -> tuple[ProjectFile, ...]:
        """Return the files that are not read because they are not trusted."""
        return tuple(file for file in self._files() if not self._is_trusted(file))

    def trusted(self) -> tuple[ProjectFile, ...]:
        """Return the files that are trusted."""
        return tuple(file for file in self._files() if self._is_trusted(file))

    def undecided(self) -> tuple[ProjectFile, ...]:
        """Return the unread files that the user was not asked about yet, or that have changed since."""
        return tuple(
            file for file in self.unread() if file.name not in self._record.refused or self.has_changed(file)
        )

    def trust(self, files: Sequence[ProjectFile]) -> None:
        """Trust files from now on, those by content as `shown` has them. Raises SettingsError."""
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
        """Trust an instruction file that was written at the user's word. Raises SettingsError."""
        self.trust([file for file in self._instruction_files() if file.path == path])

    def refuse(self, files: Sequence[ProjectFile]) -> None:
        """Do not ask about files again; what was trusted of them no longer is. Raises SettingsError."""
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
        """Return whether a file that is not trusted was, as it read then."""
        return file.by_content and file.name in self._record.contents

    def shown(self, files: Sequence[ProjectFile]) -> str:
        """Return the contents of files for the user to read, of a changed one what changed."""
        return "\n".join(self._shown(file) for file in files)

    @property
    def line(self) -> str:
        """One line that names what is not read; empty if there is nothing."""
        names = [printable(file.name, 80) for file in self.unread()]
        if not names:
            return ""
        return f"Not read: {', '.join(names)} (this folder is not trusted: /trust, or --trust for one run)."

    def _load(self) -> FolderRecord:
        try:
            return read_record(self._paths, self.root)
        except SettingsError as error:
            self.problem = str(error)
            return FolderRecord()

    def _files(self) -> Iterator[ProjectFile]:
        settings = self._settings_file()
        if settings is not None:
            yield settings
        yield from self._instruction_files()

    def _settings_file(self) -> ProjectFile | None:
        path = self.folder / PROJECT_FILE
        if not is_file_inside(path, self.root) or _is_same(path, self._paths.config_file):
            return None
        return ProjectFile(path, self._name(path), by_content=True)

    def _instruction_files(self) -> Iterator[ProjectFile]:
        above = [folder for folder in self.folder.parents if folder.is_relative_to(self.root)]
        for folder in (*reversed(above), self.folder):
            for name in INSTRUCTION_NAMES:
                path = folder / name
                if is_file_inside(path, self.root):
                    yield ProjectFile(path, self._name(path))
                    break

    def _is_trusted(self, file: ProjectFile) -> bool:
        if self.everything:
            return True
        if not file.by_content:
            return file.name in self._record.instructions
        known = self._record.contents.get(file.name)
        return known is not None and hashlib.sha256(self._content(file)).hexdigest() == known.sha256

    def _content(self, file: ProjectFile) -> bytes:
        """Return a file's bytes, which are read once: what was shown or compared is what is used."""
        if file.name not in self._read_data:
            try:
                self._read_data[file.name] = read_inside(file.path, self.root, _MAX_SETTINGS + 1)
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

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def find_root(folder: Path) -> Path:
    """Return the root of the repository that a resolved folder is in, or the folder itself."""
    for parent in (folder, *folder.parents):
        try:
            if (parent / ".git").exists():
                return parent
        except OSError:  # a folder above that may not be looked into
            break
    return folder


def _united(before: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *more)))


def _is_same(path: Path, other: Path) -> bool:
    try:
        return other.exists() and path.samefile(other)
    except OSError:
        return False
