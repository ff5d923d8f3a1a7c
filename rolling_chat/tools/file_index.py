"""An index of the files in the working folder, for completing their names."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path

from rolling_chat.programs import FOR_USER, find_program
from rolling_chat.tools.search_process import Tree

MAX_FILES = 300_000  # further files are not indexed
_GIT_SECONDS, _TREE_SECONDS = 20.0, 10.0  # the time limits for indexing
_CHUNK = 4_000  # names searched at a time, in less than a millisecond
# An untrusted repository must not make git run or fetch anything.
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=", "--no-pager")
_NO_FETCH = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
_MAX_LETTERS = 40  # of the typed text that are searched for


class FileIndex:
    """The files and folders of the working folder; names of folders end in `/`. Searches never wait."""

    def __init__(self, files: Iterable[str] = ()) -> None:
        names = sorted(_with_folders(files), key=lambda name: (name.rstrip("/").count("/"), len(name), name))
        self._chunks = [names[at : at + _CHUNK] for at in range(0, len(names), _CHUNK)]
        # every name follows a line end, which makes searching fast
        self._folded = ["".join(f"\n{_searchable(name)}" for name in chunk) for chunk in self._chunks]
        self._names = frozenset(names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def search(self, typed: str, limit: int) -> list[str]:
        """Return up to `limit` names that match `typed`, best first and, among equals, the least nested.

        The best begin with it; then come those whose last part does, those that contain it, and those with
        all its letters in order. Case is ignored.
        """
        wanted = _searchable(typed)[:_MAX_LETTERS]
        found: dict[str, None] = {}
        for names in (
            self._with(f"\n{wanted}"),
            self._named(wanted),
            self._with(wanted),
            self._with_letters(wanted),
        ):
            for name in islice(names, limit):
                found[name] = None
                if len(found) >= limit:
                    return list(found)
        return list(found)

    def _with(self, text: str) -> Iterator[str]:
        for names, folded in zip(self._chunks, self._folded, strict=True):
            for index, _ in _lines_with(text, folded):
                yield names[index]

    def _named(self, text: str) -> Iterator[str]:
        """Yield the names whose last part begins with `text`."""
        for names, folded in zip(self._chunks, self._folded, strict=True):
            for index, at in _lines_with(f"/{text}", folded):
                if "/" not in names[index][at + 1 : -1]:
                    yield names[index]

    def _with_letters(self, text: str) -> Iterator[str]:
        """Yield the names that contain all letters of `text` in this order."""
        letters = "".join(f"[^\n{re.escape(one)}]*+{re.escape(one)}" for one in text)
        pattern = re.compile(f"\n{letters}")
        for names, folded in zip(self._chunks, self._folded, strict=True):
            at = index = 0
            for match in pattern.finditer(folded):
                index += folded.count("\n", at, match.start())
                at = match.start()
                yield names[index]


def _lines_with(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Yield every line that contains `text`: its index, and the index of the text in the line."""
    begin = index = 0
    at = folded.find(text)
    while at >= 0:
        index += folded.count("\n", begin, at)
        begin = at
        start = folded.rfind("\n", 0, at + 1)
        yield index - (folded[at] != "\n"), at - start - 1
        at = folded.find("\n", at + 1)
        at = folded.find(text, at) if at >= 0 else -1


def read_index(folder: Path, environ: Mapping[str, str]) -> FileIndex:
    """Index the files of a folder that git does not ignore; call it from a thread."""
    names = _from_git(folder, environ)
    return FileIndex(names if names is not None else _from_tree(folder))


def _from_git(folder: Path, environ: Mapping[str, str]) -> list[str] | None:
    """Return the files that git lists; None outside a repository, or if git fails."""
    git = find_program("git", environ, folder)
    if git is None:
        return None
    try:
        ended = subprocess.run(  # noqa: S603  # a program from outside the folder, no shell
            [git, *_HARMLESS, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=folder,
            env={**environ, **_NO_FETCH, **FOR_USER},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if ended.returncode:
        return None
    names = dict.fromkeys(os.fsdecode(name) for name in ended.stdout.split(b"\0")[:MAX_FILES] if name)
    # an untracked nested repository is listed as a folder
    return [name for name in names if not name.startswith(("/", "../"))]


def _from_tree(folder: Path) -> Sequence[str]:
    until = time.monotonic() + _TREE_SECONDS
    try:
        names = takewhile(lambda _: time.monotonic() < until, Tree(str(folder), "", ()).names())
        return [path for path, _, _ in islice(names, MAX_FILES)]
    except OSError:
        return ()


def _with_folders(files: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for name in files:
        names.add(name)
        above = name.rstrip("/").rfind("/")
        while above > 0 and (parent := name[: above + 1]) not in names:
            names.add(parent)
            above = name.rfind("/", 0, above)
    return names


def _searchable(name: str) -> str:
    """Return a name on one line and in lower case, unless that would change its length."""
    folded = name.lower().replace("\n", "\0")
    return folded if len(folded) == len(name) else name.replace("\n", "\0")
