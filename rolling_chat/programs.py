"""Find the programs that this program starts itself, never in the working folder.

Anybody may have written a folder's files, and PATH may include it (`.`, an empty entry,
`./node_modules/.bin`). The PATH of commands that the user approves is not changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# the system's own folders of programs, allowed even below a working folder such as /
_SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin")
_SUFFIXES = ".COM;.EXE;.BAT;.CMD"  # on Windows without PATHEXT

STARTED_BY = "STARTED_BY_ROLLING_CHAT"
"""The variable that tells a child process on whose behalf it was started: the user's, or a command's."""
FOR_USER = {STARTED_BY: "user"}


def find_program(
    name: str, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> str | None:
    """Return the absolute path of a program found on PATH outside the working folder, if any.

    Only absolute entries of PATH are searched, and symlinks are resolved before checking what is outside. An
    absolute path is the user's own choice and returned as it is; any other path is refused. `folder` is the
    working folder, by default the process's own.
    """
    if Path(name).is_absolute():
        return name
    if name != Path(name).name or not name:
        return None
    for entry in _entries(environ, folder):
        for candidate in _spellings(Path(entry, name), environ):
            if candidate.is_file() and os.access(candidate, os.X_OK) and _is_outside(candidate, folder):
                return str(candidate)
    return None


@contextmanager
def trusted_path() -> Iterator[None]:
    """Make libraries find programs as `find_program` does, in a block."""
    before = {name: os.environ.get(name) for name in ("PATH", STARTED_BY)}
    # an empty PATH would be the working folder
    os.environ["PATH"] = os.pathsep.join(_entries(os.environ, None)) or os.defpath
    os.environ.update(FOR_USER)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _entries(environ: Mapping[str, str], folder: Path | None) -> list[str]:
    """Return the absolute entries of PATH that are not in the working folder."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return [entry for entry in entries if Path(entry).is_absolute() and _is_outside(Path(entry, "x"), folder)]


def _is_outside(program: Path, folder: Path | None) -> bool:
    working = os.path.realpath(folder or os.curdir)
    if not any(_is_in(path, working) for path in (os.path.normpath(program), os.path.realpath(program))):
        return True
    home = str(Path(os.path.normpath(program)).parent)
    return home in _SYSTEM and home != working and _is_in(home, working)


def _is_in(path: str, folder: str) -> bool:
    return Path(os.path.normcase(path)).is_relative_to(os.path.normcase(folder))


def _spellings(program: Path, environ: Mapping[str, str]) -> list[Path]:
    if os.name != "nt":
        return [program]
    suffixes = environ.get("PATHEXT", _SUFFIXES).split(os.pathsep)
    return [program.with_name(program.name + suffix) for suffix in ("", *suffixes)]
