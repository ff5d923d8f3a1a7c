"""Find a project's own files that would take effect, by their names, without opening them."""

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
"""The names of instruction files; in each folder, the first that exists is read."""
PROJECT_FILE = Path(".rolling-chat") / "config.toml"
SKILL_FILE = "SKILL.md"
SHARED_FOLDERS = (".claude", ".agents")
"""The folders of a project's skills and commands for any agent; the later one takes precedence."""

_MAX_ENTRIES = 2_000  # examined in one folder
_MAX_FILES = 200  # skills or commands in one folder
_MAX_DEPTH = 4  # of nested folders of commands


class FileKind(Enum):
    """The kind of a project's own file.

    `words` describes it for the user. `by_content`: it is trusted by its contents, otherwise by its path.
    `is_live`: a change of trust takes effect with the next message, otherwise at the next start. `is_reread`:
    it is read again with every message, otherwise once per run.
    """

    SETTINGS = ("settings", {"by content"})
    # not read again, because a model that edits them could disable a guard
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
        """Whether the file is trusted by its contents."""
        return self.kind.by_content


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Finds a project's own files in a working folder and its parents, up to the root of the repository.

    All of them are regular files below the root, even after following symlinks. The program's own files and
    the user's own shared folder are excluded.
    """

    folder: Path
    root: Path
    paths: Paths

    def find(self) -> Iterator[ProjectFile]:
        """Yield all files by kind, from the root down."""
        for kind in FileKind:
            yield from self.of(kind)

    def of(self, kind: FileKind) -> Iterator[ProjectFile]:
        """Yield the files of one kind, from the root down."""
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
    """Yield the paths of `SKILL.md` for the skills in a folder, by name; the files need not exist."""
    for entry in _entries(folder):
        if _is_folder(entry, through_links=True):
            yield folder / entry.name / SKILL_FILE


def command_files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the Markdown files in a folder and its subfolders, by name, without following linked folders."""
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
