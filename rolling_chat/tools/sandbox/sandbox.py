"""The sandbox of this machine: found once, and put around one command at a time."""

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

# These name sockets of the desktop, of agents and of terminals, which a command cannot reach.
_REMOVED = (
    "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
    "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "TMUX", "TMUX_PANE", "STY",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SandboxProgram:
    """The program that confines commands; or, without a kind, the reason why there is none."""

    kind: Literal["bubblewrap", "sandbox-exec", ""]
    path: str = ""
    missing: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.path})" if self.kind else f"none: {self.missing}"


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A command line that runs a command in a sandbox, and its environment.

    `moved` holds, once the command is over, what it made where it may not, by the name that this has now.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    moved: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What confines a command; `own` are the program's own files and folders, which it may not read."""

    program: SandboxProgram
    own: tuple[Path, ...] = ()
    has_network: bool = False

    @asynccontextmanager
    async def around(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str]
    ) -> AsyncIterator[Enclosed]:
        """Prepare a sandbox in which `command` runs in `folder`, for as long as the block lasts.

        Raises OSError.
        """
        walls = await asyncio.to_thread(self._plan, folder, environ)
        if self.program.kind == "sandbox-exec":  # which forbids names that do not exist, too
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
        """Return the environment of a command within `walls`: temporary files and caches where it writes."""
        inside = walls.temporary if self.program.kind == "sandbox-exec" else temporary_inside(walls)
        kept = {name: value for name, value in environ.items() if name not in _REMOVED}
        temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(inside))
        caches = {"XDG_CACHE_HOME": str(inside / "cache"), "npm_config_cache": str(inside / "cache" / "npm")}
        return {**kept, **temporary, **caches}


class Stubs:
    """Empty folders that keep names taken while commands run, and are removed when none runs any more.

    An empty folder is what git and its users take for nothing, and removing one can lose nothing.
    """

    def __init__(self) -> None:
        self._users: Counter[Path] = Counter()
        self._held: dict[Path, int] = {}  # by descriptors, whose locks tell other processes

    @contextmanager
    def made(self, paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
        """Make the folders for as long as the block lasts, and as processes are left running after it.

        Returns those that could be made.
        """
        taken = tuple(path for path in paths if self._hold(path))
        self._users.update(taken)
        try:
            yield taken
        finally:
            self._users.subtract(taken)
            if not CHILDREN.has_any():
                self.remove()

    def remove(self, *, needed: bool = False) -> None:
        """Remove the folders that no command needs, or all of them; not those that another process needs."""
        for path in [path for path, users in self._users.items() if users <= 0 or needed]:
            del self._users[path]
            held = self._held.pop(path)
            with suppress(OSError):  # in use elsewhere, or no longer empty: somebody made it theirs
                _lock(held, is_shared=False)
                path.rmdir()
            os.close(held)

    def _hold(self, path: Path) -> bool:
        """Make an empty folder, or take one that is there; False where neither can be."""
        if path in self._held and _is_open_at(self._held[path], path):
            return True
        for _ in range(_TRIES):  # another process may be about to remove it
            try:
                path.mkdir(exist_ok=True)
                held = os.open(path, os.O_RDONLY)
            except OSError:  # where we cannot, a command cannot either
                return False
            with suppress(OSError):  # not every file system has locks
                _lock(held, is_shared=True)
            if _is_open_at(held, path):
                if path in self._held:
                    os.close(self._held[path])
                self._held[path] = held
                return True
            os.close(held)
        return False


STUBS = Stubs()
"""The stubs of this process."""


class Newcomers:
    """Files that nobody but the user may make, which were not there when a command began."""

    def __init__(self) -> None:
        self._watched: set[Path] = set()

    @contextmanager
    def watched(self, paths: Sequence[Path]) -> Iterator[list[Path]]:
        """Move away what appears while the block lasts, and as processes are left running after it.

        The list is filled when the block is over, with the names that this has now.
        """
        moved: list[Path] = []
        self._watched.update(paths)
        try:
            yield moved
        finally:
            moved += self.move_away()

    def move_away(self) -> list[Path]:
        """Move away what has appeared; watch no longer once nothing is left running that could make more."""
        if not self._watched:
            return []
        moved = [new for path in sorted(self._watched) if (new := _moved_away(path)) is not None]
        if not CHILDREN.has_any():
            self._watched.clear()
        return moved

    def spare(self, path: Path) -> None:
        """Leave a file alone that the user is about to write, or has approved."""
        self._watched.discard(path)


NEWCOMERS = Newcomers()
"""The files that commands of this process may not make."""


@functools.cache
def find_sandbox() -> SandboxProgram:
    """Find the system's sandbox and try it; takes some milliseconds once, so call it in a thread."""
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
    """Run nothing within it: in a container, the program may be there and not work."""
    if not program.path:
        return SandboxProgram("", missing=program.missing)
    folder = Path("/usr").resolve()
    # with everything that a command may need: older versions do not know it all
    hidden = (_private() / "hidden", _private() / "empty")
    walls = Walls(folder, _private() / "tmp", hidden=hidden, read_only=(folder,), is_writable=False)
    try:
        tried = subprocess.run(  # noqa: S603 - nothing foreign in it
            Sandbox(program).enclose(["/bin/sh", "-c", ":"], walls),
            capture_output=True, check=False, timeout=_PROBE_SECONDS, stdin=subprocess.DEVNULL, env=FOR_USER,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return SandboxProgram("", missing=f"{program.kind} does not work here: {type(error).__name__}")
    if tried.returncode == 0:
        return SandboxProgram(program.kind, program.path)
    said = one_line(tried.stderr.decode(errors="replace"), 200) or f"exit code {tried.returncode}"
    return SandboxProgram("", missing=f"{program.kind} does not work here: {said}")


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
    """Remove what the sandboxes of this process left, unless the user let a process run on that uses it."""
    STUBS.remove(needed=True)
    NEWCOMERS.move_away()
    if _private.cache_info().currsize and not CHILDREN.has_any():
        shutil.rmtree(_private(), ignore_errors=True)


def told_of_moved(path: Path) -> str:
    """Return a line on what a command made where it may not, by the name that this has now."""
    return f"{path.name.partition(_MOVED)[0]} may not be made by a command: what one made is now {path.name}"


def _moved_away(path: Path) -> Path | None:
    """Give what is at `path` another name beside it; None where nothing is."""
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


def _is_open_at(held: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(held), path.lstat())
    return False


def _lock(held: int, *, is_shared: bool) -> None:
    """Lock a folder: shared, after the moment that another needs to remove it; else at once or OSError."""
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    fcntl.flock(held, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
