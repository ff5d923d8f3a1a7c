"""Find the sandbox program of this machine, and run single commands in it."""

from __future__ import annotations

import asyncio
import atexit
import functools
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rolling_chat.programs import FOR_USER, find_program
from rolling_chat.text import one_line
from rolling_chat.tools.leftover_processes import CHILDREN
from rolling_chat.tools.sandbox.bubblewrap import arguments, temporary_inside
from rolling_chat.tools.sandbox.seatbelt import profile
from rolling_chat.tools.sandbox.walls import Walls, plan_walls

_PROBE_SECONDS = 10
_MOVED = ".from-command"
_TRIES = 10
_SEATBELT = Path("/usr/bin/sandbox-exec")

# Variables that name sockets of the desktop, of agents and of terminals, which commands cannot reach.
_REMOVED = (
    "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
    "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "TMUX", "TMUX_PANE", "STY",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SandboxProgram:
    """The program that confines commands; if `kind` is empty, `missing` says why there is none."""

    kind: Literal["bubblewrap", "sandbox-exec", ""]
    path: str = ""
    missing: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.path})" if self.kind else f"none: {self.missing}"


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A command line that runs a command in a sandbox, and its environment.

    Once the command has ended, `moved` has the new names of forbidden files that it made.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    moved: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Confines commands; `own` are the program's own files and folders, which they may not read."""

    program: SandboxProgram
    own: tuple[Path, ...] = ()
    has_network: bool = False

    @asynccontextmanager
    async def around(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str]
    ) -> AsyncIterator[Enclosed]:
        """Prepare a sandbox in which `command` runs in `folder`, until the block ends. Raises OSError."""
        walls = await asyncio.to_thread(self._plan, folder, environ)
        if self.program.kind == "sandbox-exec":  # it also forbids names that do not exist
            yield Enclosed(self.enclose(command, walls), self._environment(environ, walls))
            return
        with STUBS.made(walls.stubs) as made, NEWCOMERS.watched(walls.newcomers) as moved:
            walls = replace(walls, stubs=made)
            yield Enclosed(self.enclose(command, walls), self._environment(environ, walls), moved)

    def _plan(self, folder: Path, environ: Mapping[str, str]) -> Walls:
        return plan_walls(folder, _private() / "tmp", environ, self.own, has_network=self.has_network)

    def enclose(self, command: Sequence[str], walls: Walls) -> list[str]:
        """Return the command line that runs a command within `walls`."""
        if self.program.kind == "sandbox-exec":
            return [self.program.path, "-p", profile(walls), *command]
        return [self.program.path, *arguments(walls, _private() / "empty"), *command]

    def _environment(self, environ: Mapping[str, str], walls: Walls) -> dict[str, str]:
        """Return the environment of a command within `walls`, with writable temporary and cache folders."""
        inside = walls.temporary if self.program.kind == "sandbox-exec" else temporary_inside(walls)
        kept = {name: value for name, value in environ.items() if name not in _REMOVED}
        temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(inside))
        caches = {"XDG_CACHE_HOME": str(inside / "cache"), "npm_config_cache": str(inside / "cache" / "npm")}
        return {**kept, **temporary, **caches}


class Stubs:
    """Empty folders that occupy names while commands run, and are removed when none runs any more.

    Git and its users ignore empty folders, and removing one loses nothing.
    """

    def __init__(self) -> None:
        self._users: Counter[Path] = Counter()
        self._descriptors: dict[Path, int] = {}  # their locks show other processes that the folders are used

    @contextmanager
    def made(self, paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
        """Make the folders until the block ends and no process is left running after it.

        Yield those that could be made.
        """
        made = tuple(path for path in paths if self._make(path))
        self._users.update(made)
        try:
            yield made
        finally:
            self._users.subtract(made)
            if not CHILDREN.has_any():
                self.remove()

    def remove(self, *, needed: bool = False) -> None:
        """Remove the folders that no command needs (all with `needed`) and no other process uses."""
        for path in [path for path, users in self._users.items() if users <= 0 or needed]:
            del self._users[path]
            descriptor = self._descriptors.pop(path)
            with suppress(OSError):  # another process uses it, or it is no longer empty
                _lock(descriptor, is_shared=False)
                path.rmdir()
            os.close(descriptor)

    def _make(self, path: Path) -> bool:
        """Make an empty folder, or use an existing one; return whether that succeeded."""
        if path in self._descriptors and _is_open_at(self._descriptors[path], path):
            return True
        for _ in range(_TRIES):  # another process may be about to remove it
            try:
                path.mkdir(exist_ok=True)
                descriptor = os.open(path, os.O_RDONLY)
            except OSError:  # then a command cannot make it either
                return False
            with suppress(OSError):  # not every file system has locks
                _lock(descriptor, is_shared=True)
            if _is_open_at(descriptor, path):
                if path in self._descriptors:
                    os.close(self._descriptors[path])
                self._descriptors[path] = descriptor
                return True
            os.close(descriptor)
        return False


STUBS = Stubs()
"""The stubs of this process."""


class Newcomers:
    """Files that only the user may create, and that did not exist when a command began."""

    def __init__(self) -> None:
        self._watched: set[Path] = set()

    @contextmanager
    def watched(self, paths: Sequence[Path]) -> Iterator[list[Path]]:
        """Move away files that appear until the block ends and no process is left running after it.

        When the block ends, the list gets the new names of the files moved by then.
        """
        moved: list[Path] = []
        self._watched.update(paths)
        try:
            yield moved
        finally:
            moved += self.move_away()

    def move_away(self) -> list[Path]:
        """Move away files that have appeared; stop watching if no process is left that could create more."""
        if not self._watched:
            return []
        moved = [new for path in sorted(self._watched) if (new := _moved_away(path)) is not None]
        if not CHILDREN.has_any():
            self._watched.clear()
        return moved

    def spare(self, path: Path) -> None:
        """Stop watching a file that the user is about to write or has approved."""
        self._watched.discard(path)


NEWCOMERS = Newcomers()
"""The files that commands of this process may not create."""


@functools.cache
def find_sandbox() -> SandboxProgram:
    """Find the system's sandbox and try it; call it in a thread, as it takes some milliseconds at first."""
    match sys.platform:
        case "linux":
            path = find_program("bwrap")
            return _tried(SandboxProgram("bubblewrap", path or "", "bubblewrap is not installed"))
        case "darwin":
            path = str(_SEATBELT) if _SEATBELT.exists() else ""
            return _tried(SandboxProgram("sandbox-exec", path, "sandbox-exec was not found"))
        case _:
            return SandboxProgram("", missing="this system has none that Rolling Chat can use")


def _tried(program: SandboxProgram) -> SandboxProgram:
    """Try to run an empty command: in a container, the program may exist but not work."""
    if not program.path:
        return SandboxProgram("", missing=program.missing)
    folder = Path("/usr").resolve()
    # use every feature that a command may need, because older versions lack some
    hidden = (_private() / "hidden", _private() / "empty")
    walls = Walls(folder, _private() / "tmp", hidden=hidden, read_only=(folder,), is_writable=False)
    try:
        done = subprocess.run(  # noqa: S603 - all arguments are our own
            Sandbox(program).enclose(["/bin/sh", "-c", ":"], walls),
            capture_output=True, check=False, timeout=_PROBE_SECONDS, stdin=subprocess.DEVNULL, env=FOR_USER,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return SandboxProgram("", missing=f"{program.kind} does not work here: {type(error).__name__}")
    if done.returncode == 0:
        return SandboxProgram(program.kind, program.path)
    reason = one_line(done.stderr.decode(errors="replace"), 200) or f"exit code {done.returncode}"
    return SandboxProgram("", missing=f"{program.kind} does not work here: {reason}")


@functools.cache
def _private() -> Path:
    """Make the private folder of this process, which is removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="rolling-chat-")).resolve()
    (folder / "tmp").mkdir()
    (folder / "hidden").mkdir()
    (folder / "empty").touch(0o400)
    atexit.register(clean_up)
    return folder


def clean_up() -> None:
    """Remove what the sandboxes of this process left behind, unless a process still uses it."""
    STUBS.remove(needed=True)
    NEWCOMERS.move_away()
    if _private.cache_info().currsize and not CHILDREN.has_any():
        shutil.rmtree(_private(), ignore_errors=True)


def told_of_moved(path: Path) -> str:
    """Return a line about a forbidden file that a command made; `path` is its new name."""
    return f"{path.name.partition(_MOVED)[0]} may not be made by a command: what one made is now {path.name}"


def _moved_away(path: Path) -> Path | None:
    """Rename the file at `path` within its folder, and return its new path; None if there is none."""
    if not os.path.lexists(path):
        return None
    for number in itertools.count(1):
        new = path.with_name(f"{path.name}{_MOVED}-{number}")
        if os.path.lexists(new):
            continue
        with suppress(OSError):
            path.rename(new)
            return new
        return None
    raise AssertionError  # the count never ends


def _is_open_at(descriptor: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _lock(descriptor: int, *, is_shared: bool) -> None:
    """Lock a folder: shared, waiting while another process removes it, or exclusively, without waiting.

    Raises OSError.
    """
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    fcntl.flock(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
