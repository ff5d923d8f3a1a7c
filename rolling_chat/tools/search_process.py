"""Search files line by line, with the help of ripgrep if it is installed.

It runs as a process of its own (`python -I search_process.py PATTERN LONGEST RIPGREP FOLDER PART…`; FOLDER is
a descriptor of the working folder, or empty if folders cannot be opened): a pattern that backtracks endlessly
holds Python's lock, and only a process can be stopped. It imports nothing of the program. Every folder is
opened from its parent without following links, so that replacing one with a link has no effect.

ripgrep only names the files that may match, by a text that every match contains. They are read and matched
here, so that the matches are the same without it: its patterns, encodings and line ends differ from Python's.

It prints `name NUL number:text` for every match, with names relative to the target and empty for a file. It
exits like grep: 0 if something was found, 1 if nothing was, 2 if the pattern cannot be used; and with 3 if
the search itself failed, with the reason on its last line.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec, Pattern

FOUND, NOTHING, FAILED, BROKEN = 0, 1, 2, 3
COMPLAINT = "pattern: "
_FAULT = "fault: "
_MAX_FAULT = 300  # characters
CUT = " [… line cut]"

HISTORY = (".git", ".hg", ".svn", ".jj")  # folders of version control, which are not searched
_IGNORE = ".gitignore"
_SNIFF = 8_192
MAX_FILE = 50_000_000  # bytes; larger files are data and not searched
_MAX_LINE = 1_000_000  # bytes searched in a line
_MAX_RULES = 1_000_000  # bytes read of a .gitignore
_MAX_OPEN = 100  # open folders on the path to the current one
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)

_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

# one character, escape, class, quantifier or parenthesis
_TOKEN = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|.)"
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|\(\?#[^)]*\)|.",
    re.DOTALL,
)
_FLAGS_FIRST = re.compile(r"\(\?([aimsux]+)\)")
_SPECIAL = ".^$*+?{}[]()|\\\ufffd"  # the last one replaces undecodable bytes
_ANYTHING = "(?:)"
_MIN_TEXT = 2  # characters; a single one is in every file

Where: TypeAlias = int | str  # an open folder, or its path if folders cannot be opened
Rules: TypeAlias = "tuple[tuple[str, GitIgnoreSpec], ...]"  # by the folder that contains them, as `a/b/`
Names: TypeAlias = "Mapping[str, Names]"  # nested names below a folder; a file has an empty mapping


@dataclass(slots=True)
class _Folder:
    """A folder on the path to the current one; `where` is None while it is closed."""

    where: Where | None
    name: str
    path: str  # from the working folder, with a final slash
    rules: Rules
    rest: list[tuple[str, bool]]  # remaining entries, last first: a name, and whether it is a folder
    wanted: Names | None


class Tree:
    """The files below a folder, in the order of their names, at any depth.

    With `wanted`, only the files that it names.
    """

    def __init__(self, root: Where, path: str, rules: Rules, wanted: Names | None = None) -> None:
        self._root = root
        self._stack = [self._enter(root, "", path, rules, wanted)]

    def files(self) -> Iterator[tuple[str, int]]:
        """Yield every file that git would not ignore: its path below the root, and a descriptor."""
        for path, where, name in self.names():
            try:
                descriptor = _open(where, name)
            except OSError:
                continue  # unreadable, or gone meanwhile
            yield path, descriptor

    def names(self) -> Iterator[tuple[str, Where, str]]:
        """Yield every file that git would not ignore: its path below the root, its open folder, its name."""
        start = len(self._stack[0].path)
        while self._stack:
            folder = self._stack[-1]
            if not folder.rest:
                self._leave()
                continue
            name, is_folder = folder.rest.pop()
            if name in HISTORY or _is_ignored(folder, name, is_folder):
                continue
            try:
                where = self._reopened()
                if is_folder:
                    below = open_below(where, name)
                    wanted = folder.wanted[name] if folder.wanted is not None else None
                    path = f"{folder.path}{name}/"
                    self._stack.append(self._enter(below, name, path, folder.rules, wanted))
                    self._close_old()
                else:
                    yield folder.path[start:] + name, where, name
            except OSError:
                continue  # unreadable, or gone meanwhile

    def _enter(self, where: Where, name: str, path: str, rules: Rules, wanted: Names | None) -> _Folder:
        if wanted is None:
            with os.scandir(where) as entries:
                found = [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if not entry.is_symlink()
                ]
        else:
            found = [(below, bool(wanted[below])) for below in wanted]
        found.sort(key=lambda one: os.fsencode(one[0]), reverse=True)
        return _Folder(where, name, path, rules + read_rules(where, path), found, wanted)

    def _leave(self) -> None:
        folder = self._stack.pop()
        if isinstance(folder.where, int) and self._stack:
            os.close(folder.where)

    def _close_old(self) -> None:
        """Close the outermost open folder below the root if too many are open."""
        at = len(self._stack) - _MAX_OPEN
        if at > 0 and isinstance(self._stack[at].where, int):
            os.close(self._stack[at].where)  # type: ignore[arg-type]
            self._stack[at].where = None

    def _reopened(self) -> Where:
        """Return the open current folder, reopening it from its nearest open ancestor."""
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
        return os.path.join(where, name)  # noqa: PTH118  # undecodable bytes must be preserved
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
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # only imported if there are rules

    rules = [spec for line in lines if (spec := _rule(line))]
    return ((path, GitIgnoreSpec.from_lines(rules)),)


def _rule(line: str) -> str:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return ""  # git ignores invalid rules too
    return line


def _is_ignored(folder: _Folder, name: str, is_folder: bool) -> bool:
    """Return whether a file is ignored: the nearest rules decide, and the last of these."""
    path = f"{folder.path}{name}{'/' if is_folder else ''}"
    for base, spec in reversed(folder.rules):
        for rule in reversed(spec.patterns):
            if rule.include is not None and _matches_itself(rule, path[len(base) :]):
                return rule.include
    return False


def _matches_itself(rule: Pattern, path: str) -> bool:
    """Return whether a rule matches a file or folder itself, not only a folder that contains it.

    `!src/` means that `src` is not ignored, but does not affect what other rules say about its contents.
    """
    found = rule.match_file(path)
    if found is None:
        return False
    last = len(path) - 1
    # the library's rules mark the slash after the folder that they name; that of `*/` is any slash
    expression = found.match.re
    is_own = all(found.match.start(mark) in {-1, last} for mark in expression.groupindex)
    return is_own or expression.search(path, last) is not None


def matches(expression: re.Pattern[str], descriptor: int, longest: int, *, named: bool) -> Iterator[str]:
    """Yield `number:text` for every matching line; a file that was `named` may have any size."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_size > MAX_FILE and not named):
            return
        head = file.peek(_SNIFF)[:_SNIFF]
        encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "")
        lines: Iterator[bytes] = iter(file)
        if encoding:
            lines = iter(_recoded(file.read(MAX_FILE), encoding))
        elif b"\x00" in head:
            return
        for number, line in enumerate(lines, start=1):
            text = line[:_MAX_LINE].decode("utf-8", errors="replace").rstrip("\r\n")
            if number == 1:
                text = text.removeprefix("\ufeff")
            if expression.search(text):
                shown = text if len(text) <= longest else text[:longest] + CUT
                yield f"{number}:{shown}".replace("\x00", "\ufffd")


def _recoded(data: bytes, encoding: str) -> list[bytes]:
    """Return the lines of a text, encoded as UTF-8."""
    lines = data.decode(encoding, errors="replace").encode("utf-8", errors="replace").split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _search(
    target: Where, path: str, rules: Rules, wanted: Names | None, take: Callable[[int, bool], Iterator[str]]
) -> Iterator[str]:
    if not _is_folder(target):
        descriptor = target if isinstance(target, int) else os.open(target, _FLAGS)
        for line in take(descriptor, True):
            yield f"\x00{line}"
        return
    for name, descriptor in Tree(target, path, rules, wanted).files():
        try:
            for line in take(descriptor, False):
                yield f"{name}\x00{line}"
        except OSError:
            continue


def _is_folder(target: Where) -> bool:
    return stat.S_ISDIR(os.fstat(target).st_mode) if isinstance(target, int) else os.path.isdir(target)  # noqa: PTH112


def _find_target(folder: str, parts: Sequence[str]) -> tuple[Where, Rules]:
    """Return the target at the path `parts` from the working folder, and the rules of its parent folders."""
    where: Where = int(folder) if folder else "."
    rules: Rules = ()
    for at, part in enumerate(parts):
        rules += read_rules(where, "".join(f"{above}/" for above in parts[:at]))
        where = _open(where, part) if isinstance(where, int) else open_below(where, part)
    return where, rules


def _named_by_ripgrep(program: str, pattern: str, target: int) -> Names | None:
    """Return the files below a folder that may match; None if ripgrep fails.

    It fails if a path is too long for it, or if it is an older version that lacks an option.
    """
    if sys.platform == "win32":  # folders have no descriptors
        return None
    texts, ignores_case = required_texts(pattern)
    # match files in UTF-16 and UTF-32 by their marks, because ripgrep must not decode any
    alternatives = [*map(_escaped, texts), r"^\xff\xfe", r"^\xfe\xff", r"^\x00\x00\xfe\xff"]
    case = "i" if ignores_case else ""
    wanted = (
        [f"--regexp=(?{case}-u:{'|'.join(alternatives)})", "--files-with-matches"] if texts else ["--files"]
    )
    try:
        done = subprocess.run(  # noqa: S603
            [
                program, "--no-config", "--no-messages", "--color=never", "--null", "--text",
                "--encoding=none", "--hidden", "--no-ignore-parent", "--no-require-git", "--no-ignore-dot",
                "--no-ignore-global", "--no-ignore-exclude", f"--max-filesize={MAX_FILE}",
                *(f"--glob=!{name}" for name in HISTORY), *wanted, "--", "./",
            ],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=partial(os.fchdir, target),  # safe, because this process has no threads
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    names = done.stdout.split(b"\0")
    is_list = not names.pop() and all(name.startswith(b"./") for name in names)
    is_sound = done.returncode == (0 if names else 1)
    return _nested(names) if is_list and is_sound else None


def _nested(paths: Sequence[bytes]) -> Names:
    root: dict[str, Names] = {}
    for path in paths:
        folder = root
        for part in os.fsdecode(path).split("/")[1:]:
            folder = folder.setdefault(part, {})  # type: ignore[assignment]
    return root


def required_texts(pattern: str) -> tuple[list[str], bool]:
    """Return texts of which every match of a pattern contains at least one, and whether case is ignored.

    There are none if that cannot be determined easily.
    """
    flags = _FLAGS_FIRST.match(pattern)
    ignores_case = flags is not None and "i" in flags[1]
    if flags is not None and "x" in flags[1]:
        return [], False
    texts = [
        max(_literals(branch, ignores_case), key=len, default="")
        for branch in _branches(pattern[flags.end() if flags else 0 :])
    ]
    return (texts if all(len(text) >= _MIN_TEXT for text in texts) else []), ignores_case


def _branches(pattern: str) -> Iterator[list[str]]:
    """Yield the alternatives of a pattern, each split into characters, groups, classes and quantifiers."""
    branch: list[str] = []
    depth = 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if depth or token == ")":
            branch += [_ANYTHING] * (token == ")" and not depth)
        elif token == "|":
            yield branch
            branch = []
        else:
            branch.append(token)
    yield branch


def _literals(tokens: Sequence[str], ignores_case: bool) -> Iterator[str]:
    """Yield the texts that every match of one alternative contains."""
    text = ""
    for token in tokens:
        char = token[1:] if token[0] == "\\" and not token[1:].isalnum() else token
        if token[0] in "*?{":  # the character before it is optional
            yield text[:-1]
        elif token[0] != "+" and len(char) == 1 and _is_plain(token, char, ignores_case):
            text += char
            continue
        else:
            yield text
        text = ""
    yield text


def _is_plain(token: str, char: str, ignores_case: bool) -> bool:
    if len(token) == 1 and char in _SPECIAL:
        return False
    # the engines fold other letters differently: `i` and the dotless i, `k` and the Kelvin sign
    return not ignores_case or (char.isascii() and char not in "iIkKsS")


def _escaped(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode("utf-8", errors="replace"))


def fault_of(code: int, output: bytes) -> str:
    """Return one line that says why a search ended with the exit code `code`; empty if it succeeded."""
    if code in {FOUND, FAILED} or (code == NOTHING and not output.strip()):
        return ""
    lines = output.decode("utf-8", errors="replace").strip().splitlines() if code > 0 else []
    reason = lines[-1].removeprefix(_FAULT) if lines else f"it ended with {code}"
    return reason[:_MAX_FAULT].rstrip(".")


def search(pattern: str, longest: int, ripgrep: str, folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the matches below the working folder. Raises the errors of `re` for an invalid pattern."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # for a set that other engines understand differently
        expression = re.compile(pattern)
    target, rules = _find_target(folder, parts)
    wanted = None
    if ripgrep and isinstance(target, int) and _is_folder(target):
        wanted = _named_by_ripgrep(ripgrep, pattern, target)
    path = "".join(f"{part}/" for part in parts)
    yield from _search(
        target, path, rules, wanted, lambda file, named: matches(expression, file, longest, named=named)
    )


def main(arguments: list[str]) -> int:
    """Print the matches; return the exit code."""
    pattern, longest, ripgrep, folder, *parts = arguments
    out = sys.stdout.buffer
    code = NOTHING
    try:
        for line in search(pattern, int(longest), ripgrep, folder, parts):
            code = FOUND
            out.write(line.encode("utf-8", errors="surrogateescape") + b"\n")
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        out.write(f"{COMPLAINT}{error}\n".encode())
        code = FAILED
    except OSError:
        code = NOTHING  # the target is gone, or was replaced with a link
    except Exception as error:
        out.write(f"\n{_FAULT}{type(error).__name__}: {error}\n".encode(errors="replace"))
        code = BROKEN
    out.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
