"""The files that a folder brings along and that would take effect: found by their names, never opened."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from rolling_chat.confined_files import is_file_inside
from rolling_chat.settings.paths import Paths

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first of them that a folder has is read."""
PROJECT_FILE = Path(".rolling-chat") / "config.toml"
SKILL_FILE = "SKILL.md"
SHARED_FOLDERS = (".claude", ".agents")
"""The folders in which a project keeps skills and commands for any agent; the later wins."""

_MAX_ENTRIES = 2_000  # of one folder that are looked at
_MAX_FILES = 200  # of one folder that are skills, or commands
_MAX_DEPTH = 4  # of the folders that sort commands


class FileKind(Enum):
    """What a file is that a project brings along.

    `words` name it for the user. One `by_content` is trusted as long as it reads the same, any other by its
    path. Whether a file is trusted counts from the next message on if it `is_live`, else from the next start.
    One that `is_reread` is read again with every message, any other once in a run.
    """

    SETTINGS = ("settings", {"by content"})
    # not read again: a model that may edit them could take a guard away
    HOOKS = ("hooks, which run commands by themselves", {"by content", "live"})
    MCP_SERVERS = ("MCP servers, which are started or connected to", {"by content"})
    INSTRUCTIONS = ("instructions for the model, in every request", {"live", "reread"})
    COMMAND = ("a slash command", {"by content", "live", "reread"})
    SKILL = ("a skill, instructions that the model can take up", {"by content", "live", "reread"})

    def __init__(self, words: str, traits: Set[str]) -> None:
        self.words = words
        self.by_content = "by content" in traits
        self.is_live = "live" in traits
        self.is_reread = "reread" in traits


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file of the folder that would take effect; `name` is its path below the root."""

    path: Path
    name: str
    kind: FileKind = FileKind.INSTRUCTIONS

    @property
    def by_content(self) -> bool:
        """Whether the file is trusted only as long as it reads the same."""
        return self.kind.by_content


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Finds those files in a working folder and in the folders above it, up to the root of the repository.

    All of them are regular files below the root, also by symlinks. The program's own files and the user's
    own shared folder are not the project's.
    """

    folder: Path
    root: Path
    paths: Paths

    def find(self) -> Iterator[ProjectFile]:
        """Yield all files: by kind, the root's first."""
        for kind in FileKind:
            yield from self.of(kind)

    def of(self, kind: FileKind) -> Iterator[ProjectFile]:
        """Yield the files of one kind, the root's first."""
        for path in self._paths_of(kind):
            if is_file_inside(path, self.root):
                yield ProjectFile(path, path.relative_to(self.root).as_posix(), kind)

    def _paths_of(self, kind: FileKind) -> Iterator[Path]:
        match kind:
            case FileKind.SETTINGS:
                path = self.folder / PROJECT_FILE
                if not _is_same(path, self.paths.config_file):
                    yield path
            case FileKind.INSTRUCTIONS:
                for folder in self._folders:
                    paths = (folder / name for name in INSTRUCTION_NAMES)
                    yield from itertools.islice((one for one in paths if is_file_inside(one, self.root)), 1)
            case FileKind.SKILL:
                for folder in self._shared("skills"):
                    yield from itertools.islice(skill_files(folder), _MAX_FILES)
            case FileKind.COMMAND:
                for folder in self._shared("commands"):
                    yield from itertools.islice(command_files(folder), _MAX_FILES)
            case FileKind.HOOKS:
                yield from self._shared("hooks.json", (".agents",))
            case FileKind.MCP_SERVERS:
                yield from (folder / ".mcp.json" for folder in self._folders)

    @property
    def _folders(self) -> tuple[Path, ...]:
        above = [folder for folder in self.folder.parents if folder.is_relative_to(self.root)]
        return (*reversed(above), self.folder)

    def _shared(self, name: str, places: tuple[str, ...] = SHARED_FOLDERS) -> Iterator[Path]:
        for folder in self._folders:
            for place in places:
                own = self.paths.shared_folder
                if own is not None and _is_same(folder / place, own):
                    continue
                path = folder / place / name
                if _lies_in(path, self.root):
                    yield path


def skill_files(folder: Path) -> Iterator[Path]:
    """Yield where the skills in a folder have their `SKILL.md`, by name; not all of them need be there."""
    for entry in _entries(folder):
        if _is_folder(entry, through_links=True):
            yield folder / entry.name / SKILL_FILE


def command_files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the Markdown files in a folder and in the folders below it, by name; no folder that is a link."""
    for entry in _entries(folder):
        if _is_folder(entry):
            if depth < _MAX_DEPTH:
                yield from command_files(folder / entry.name, depth + 1)
        elif entry.name.endswith(".md"):
            yield folder / entry.name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(itertools.islice(entries, _MAX_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str], *, through_links: bool = False) -> bool:
    try:
        return entry.is_dir(follow_symlinks=through_links)
    except OSError:
        return False


def _lies_in(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _is_same(path: Path, other: Path) -> bool:
    try:
        return other.exists() and path.samefile(other)
    except OSError:
        return False
