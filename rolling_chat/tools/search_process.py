"""Searching files line by line: by ripgrep where it is handed in, else here.

It runs as a process of its own (`python -I search_process.py PATTERN LONGEST RIPGREP FOLDER PART…`, FOLDER a
descriptor of the working folder, empty where folders cannot be opened): a pattern that backtracks without
end holds Python's lock, and only a process can be stopped. For the same reason it imports nothing of the
program. Every folder is opened from the one above it and no link is followed, so that what is swapped for
a link leads nowhere.

It prints `name NUL number:text` for every match, names relative to what the parts lead to and empty for a
file, and exits as grep does: 0 found, 1 nothing found, 2 a pattern that cannot be used; and with 3, its last
line saying why, when the search itself broke.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FOUND, NOTHING, FAILED, BROKEN = 0, 1, 2, 3
COMPLAINT = "pattern: "
_FAULT = "fault: "
_MAX_FAULT = 300  # characters
CUT = " [… line cut]"

HISTORY = (".git", ".hg", ".svn", ".jj")  # what version control keeps is not searched
_IGNORE = ".gitignore"
_SNIFF = 8_192
MAX_FILE = 50_000_000  # bytes; larger files are data, and not searched
_MAX_LINE = 1_000_000  # bytes of a line that are searched
_MAX_RULES = 1_000_000  # bytes of a .gitignore that are read
_MAX_OPEN = 100  # folders on the way down that are kept open
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)

Where: TypeAlias = int | str  # an open folder, or its path where folders cannot be opened
Rules: TypeAlias = "tuple[tuple[str, GitIgnoreSpec], ...]"  # by the folder that they are in, as `a/b/`


@dataclass(slots=True)
class _Folder:
    """A folder on the way down; `where` is None while it is closed."""

    where: Where | None
    name: str
    path: str  # from the working folder, with a slash at its end
    rules: Rules
    rest: list[os.DirEntry[str]]  # what is still to be looked at, last first


class Tree:
    """The files below a folder, in the order of their names; folders may be nested as deep as you like."""

    def __init__(self, root: Where, path: str, rules: Rules) -> None:
        self._root = root
        self._stack = [self._enter(root, "", path, rules)]

    def files(self) -> Iterator[tuple[str, int]]:
        """Yield every file that git would not ignore: its path below the root, and a descriptor."""
        start = len(self._stack[0].path)
        while self._stack:
            folder = self._stack[-1]
            if not folder.rest:
                self._leave()
                continue
            entry = folder.rest.pop()
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name in HISTORY or entry.is_symlink() or _is_ignored(folder, entry.name, is_folder):
                    continue
                where = self._reopened()
                if is_folder:
                    below = open_below(where, entry.name)
                    self._stack.append(
                        self._enter(below, entry.name, f"{folder.path}{entry.name}/", folder.rules)
                    )
                    self._close_old()
                else:
                    yield folder.path[start:] + entry.name, _open(where, entry.name)
            except OSError:
                continue  # unreadable, or gone meanwhile

    def _enter(self, where: Where, name: str, path: str, rules: Rules) -> _Folder:
        with os.scandir(where) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name), reverse=True)
        return _Folder(where, name, path, rules + read_rules(where, path), found)

    def _leave(self) -> None:
        folder = self._stack.pop()
        if isinstance(folder.where, int) and self._stack:
            os.close(folder.where)

    def _close_old(self) -> None:
        """Close the folder farthest up that is open, below the root, where too many are."""
        at = len(self._stack) - _MAX_OPEN
        if at > 0 and isinstance(self._stack[at].where, int):
            os.close(self._stack[at].where)  # type: ignore[arg-type]
            self._stack[at].where = None

    def _reopened(self) -> Where:
        """Reopen the folder on top, from the nearest one above it that is open."""
        first = len(self._stack) - 1
        while self._stack[first].where is None:
            first -= 1
        where = self._stack[first].where
        assert where is not None
        for folder in self._stack[first + 1 :]:
            below = open_below(where, folder.name)
            if isinstance(where, int) and self._stack[first].where != where:
                os.close(where)
            where = below
        self._stack[-1].where = where
        return where


def open_below(where: Where, name: str) -> Where:
    """Open a subfolder without following a symbolic link."""
    if isinstance(where, str):
        return os.path.join(where, name)  # noqa: PTH118  # bytes that are no text must survive
    return os.open(name, _FLAGS | getattr(os, "O_DIRECTORY", 0), dir_fd=where)


def _open(where: Where, name: str) -> int:
    if isinstance(where, str):
        return os.open(os.path.join(where, name), _FLAGS)  # noqa: PTH118
    return os.open(name, _FLAGS, dir_fd=where)


def read_rules(where: Where, path: str) -> Rules:
    """Read the rules of a folder's own .gitignore."""
    try:
        with os.fdopen(_open(where, _IGNORE), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ()
            lines = file.read(_MAX_RULES).decode(errors="replace").splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # only where there is something to leave out

    rules = [spec for line in lines if (spec := _rule(line))]
    return ((path, GitIgnoreSpec.from_lines(rules)),)


def _rule(line: str) -> str:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return ""  # git passes over what it cannot read
    return line


def _is_ignored(folder: _Folder, name: str, is_folder: bool) -> bool:
    """Say whether a file is ignored; the rules nearest to it decide."""
    path = f"{folder.path}{name}{'/' if is_folder else ''}"
    for base, spec in reversed(folder.rules):
        said = spec.check_file(path[len(base) :]).include
        if said is not None:
            return said
    return False


def matches(expression: re.Pattern[str], descriptor: int, longest: int, *, named: bool) -> Iterator[str]:
    """Yield `number:text` for every line that matches; a file that was `named` may be of any size."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_size > MAX_FILE and not named):
            return
        if b"\x00" in file.peek(_SNIFF)[:_SNIFF]:
            return
        for number, line in enumerate(file, start=1):
            text = line[:_MAX_LINE].decode("utf-8", errors="replace").rstrip("\r\n")
            if number == 1:
                text = text.removeprefix("\ufeff")
            if expression.search(text):
                shown = text if len(text) <= longest else text[:longest] + CUT
                yield f"{number}:{shown}".replace("\x00", "\ufffd")


def _search(
    target: Where, path: str, rules: Rules, expression: re.Pattern[str], longest: int
) -> Iterator[str]:
    is_file = isinstance(target, int) and not stat.S_ISDIR(os.fstat(target).st_mode)
    if is_file or (isinstance(target, str) and os.path.isfile(target)):  # noqa: PTH113
        descriptor = target if isinstance(target, int) else os.open(target, _FLAGS)
        for line in matches(expression, descriptor, longest, named=True):
            yield f"\x00{line}"
        return
    for name, descriptor in Tree(target, path, rules).files():
        try:
            for line in matches(expression, descriptor, longest, named=False):
                yield f"{name}\x00{line}"
        except OSError:
            continue


def _find_target(folder: str, parts: Sequence[str]) -> tuple[Where, Rules]:
    """Return what the parts lead to from the working folder, and the rules of the folders above it."""
    where: Where = int(folder) if folder else "."
    rules: Rules = ()
    for at, part in enumerate(parts):
        rules += read_rules(where, "".join(f"{above}/" for above in parts[:at]))
        where = _open(where, part) if isinstance(where, int) else open_below(where, part)
    return where, rules


def _ripgrep(program: str, pattern: str, longest: int, target: int) -> None:
    """Become ripgrep, with the same results."""
    place = "-"
    if stat.S_ISDIR(os.fstat(target).st_mode):
        if sys.platform != "win32":  # where no target is a descriptor
            os.fchdir(target)
        target, place = os.open(os.devnull, os.O_RDONLY), "./"
    os.dup2(target, 0)
    try:
        os.execv(  # noqa: S606  # no shell is wanted
            program,
            [
                program, "--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename",
                "--null", "--line-number", "--hidden", "--no-ignore-parent", "--no-require-git",
                "--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", f"--max-filesize={MAX_FILE}",
                "--sort=path", *(f"--glob=!{name}" for name in HISTORY), f"--max-columns={longest}",
                "--max-columns-preview", f"--regexp={pattern}", "--", place,
            ],
        )  # fmt: skip
    except OSError as error:
        raise RuntimeError(f"{program} cannot be run ({error.strerror})") from error


def fault_of(code: int, output: bytes) -> str:
    """Return one line on why a search ended with the exit code `code`; empty if it succeeded."""
    if code in {FOUND, FAILED} or (code == NOTHING and not output.strip()):
        return ""
    lines = output.decode("utf-8", errors="replace").strip().splitlines() if code > 0 else []
    reason = lines[-1].removeprefix(_FAULT) if lines else f"it ended with {code}"
    return reason[:_MAX_FAULT].rstrip(".")


def main(arguments: list[str]) -> int:
    """Print the matches; the exit code is grep's."""
    pattern, longest, ripgrep, folder, *parts = arguments
    out = sys.stdout.buffer
    code = NOTHING
    try:
        target, rules = _find_target(folder, parts)
        if ripgrep and isinstance(target, int) and not rules:
            _ripgrep(ripgrep, pattern, int(longest), target)
        path = "".join(f"{part}/" for part in parts)
        for line in _search(target, path, rules, re.compile(pattern), int(longest)):
            code = FOUND
            out.write(line.encode("utf-8", errors="surrogateescape") + b"\n")
    except (re.error, RecursionError, OverflowError) as error:
        out.write(f"{COMPLAINT}{error}\n".encode())
        code = FAILED
    except OSError:
        code = NOTHING  # it is gone, or a link is in its place
    except Exception as error:
        out.write(f"\n{_FAULT}{type(error).__name__}: {error}\n".encode(errors="replace"))
        code = BROKEN
    out.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
