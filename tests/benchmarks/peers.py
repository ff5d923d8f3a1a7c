"""Programs that are measured beside this one, each in a virtual environment of its own.

`BENCHMARK_PEERS` names a folder that keeps them between two runs; else they are installed each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_INSTALLING = 600.0  # seconds
_METADATA = "from importlib.metadata import requires; print('\\n'.join(requires({name!r}) or ()))"


class CannotBeHadError(Exception):
    """A program cannot be installed here; the text says why, in a line."""


def install(package: str, folder: Path, *, least: tuple[int, int] = (3, 11)) -> Path:
    """Install a package (`name>=1`) and return its environment's folder of programs.

    `least` is the Python that it needs. Raises CannotBeHadError.
    """
    kept = os.environ.get("BENCHMARK_PEERS")
    name = package.partition(">")[0]
    place = (Path(kept) if kept else folder) / name
    programs = place / "bin"
    if (place / "complete").exists():
        return programs
    _run([_python(least), "-m", "venv", "--clear", str(place)])
    pip = [str(programs / "python"), "-m", "pip", "install", "-q"]
    try:
        _run([*pip, package])
    except CannotBeHadError:
        _install_loosely(package, name, pip)
    (place / "complete").touch()
    return programs


def _install_loosely(package: str, name: str, pip: list[str]) -> None:
    """Install what is pinned to a release that the index does not have with the one before."""
    _run([*pip, "--no-deps", package])
    wanted = _run([pip[0], "-c", _METADATA.format(name=name)]).splitlines()
    _run([*pip, *(one.replace("==", "<=", 1) for one in wanted if "extra ==" not in one)])


def _python(least: tuple[int, int]) -> str:
    if sys.version_info[:2] >= least:
        return sys.executable
    for candidate in _candidates(least):
        try:
            found = subprocess.run([candidate, "-c", ""], capture_output=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            return candidate
    raise CannotBeHadError(f"it needs Python {least[0]}.{least[1]}")


def _candidates(least: tuple[int, int]) -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(least[1], least[1] + 4):
        name = f"python{least[0]}.{minor}"
        if found := shutil.which(name):
            yield found
        yield from (str(path) for path in sorted(root.glob(f"*/bin/{name}")))


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALLING, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBeHadError(f"it cannot be installed: {type(error).__name__}") from error
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise CannotBeHadError(f"it cannot be installed: {reason}")
    return done.stdout
