"""The command line of bubblewrap: the walls as mounts in namespaces of one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.tools.sandbox.walls import Walls

# Through these, root, who owns the files even without capabilities, could change the kernel.
_PROC = Path("/proc")
_OF_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "dynamic_debug")

# It contains sockets of the desktop, Docker and tmux, through which others could act outside of the sandbox.
# The files needed for name resolution and for the programs of NixOS are mounted again.
_RUN = Path("/run")
_KEPT_IN_RUN = (
    "systemd/resolve", "resolvconf", "NetworkManager", "current-system", "booted-system", "opengl-driver",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Mount:
    """The arguments of one mount; mounts at longer paths are made later, on top of others.

    `is_closed`: it is made read-only once all mounts are made.
    """

    path: Path
    arguments: tuple[str, ...]
    is_closed: bool = False


def namespaces(*, has_network: bool) -> list[str]:
    """Return the arguments that isolate a command from other processes and the network."""
    shared = ["--share-net"] if has_network else []
    dropped: list[str] = []
    if sys.platform != "win32" and os.geteuid() == 0:
        dropped = ["--cap-drop", "ALL"]  # other users have no capabilities
    return ["--unshare-all", *shared, *dropped]


def arguments(walls: Walls, empty: Path) -> list[str]:
    """Return the arguments of bubblewrap for a command within `walls`, up to the command itself.

    `empty` is an empty file, shown in place of hidden ones.
    """
    mounts = sorted(_mounts(walls, empty), key=lambda mount: len(mount.path.parts))
    closed = [word for mount in mounts if mount.is_closed for word in ("--remount-ro", str(mount.path))]
    made = [word for mount in mounts for word in mount.arguments]
    root = ["--ro-bind", "/", "/"]
    start = ["--chdir", str(walls.folder), "--"]
    return [*namespaces(has_network=walls.has_network), *root, *made, *closed, *start]


def temporary_inside(walls: Walls) -> Path:
    """Return the path at which a command sees its private temporary folder."""
    return walls.temporary if _is_temporary(walls) else walls.shared_temporary[0]


def _mounts(walls: Walls, empty: Path) -> Iterator[_Mount]:
    folder = walls.folder
    yield _bound(folder, is_writable=walls.is_writable)
    yield _Mount(Path("/dev"), ("--dev", "/dev"))
    yield _Mount(_PROC, ("--proc", str(_PROC)))
    for name in _OF_KERNEL:
        yield _bound(_PROC / name, is_writable=False)
    yield from _run()
    yield from _temporary(walls)
    for path in walls.hidden:
        yield _hidden(path, empty, is_crossed=folder.is_relative_to(path))
    for path in walls.fixed:
        yield _bound(path, is_writable=True)
    for path in (*walls.read_only, *walls.stubs):
        yield _bound(path, is_writable=False)


def _run() -> Iterator[_Mount]:
    if not _RUN.is_dir():
        return
    yield _Mount(_RUN, ("--tmpfs", str(_RUN)))
    for name in _KEPT_IN_RUN:
        kept = str(_RUN / name)
        yield _Mount(_RUN / name, ("--ro-bind-try", kept, kept))


def _is_temporary(walls: Walls) -> bool:
    return not walls.shared_temporary or any(map(walls.folder.is_relative_to, walls.shared_temporary))


def _temporary(walls: Walls) -> Iterator[_Mount]:
    """Yield mounts that replace the system's temporary folders with the private one.

    If the working folder is in one of them, that is empty and read-only around the working folder instead: an
    earlier command could have replaced a mount point within the private folder with a link.
    """
    is_inside = _is_temporary(walls)
    if is_inside:
        yield _bound(walls.temporary, is_writable=True)
    for path in walls.shared_temporary:
        if path.is_symlink() or not path.is_dir() or path == walls.folder:
            continue
        source = ("--tmpfs",) if is_inside else ("--bind", str(walls.temporary))
        yield _Mount(path, (*source, str(path)), is_closed=is_inside)


def _hidden(path: Path, empty: Path, *, is_crossed: bool) -> _Mount:
    if not path.is_dir():
        return _Mount(path, ("--ro-bind", str(empty), str(path)))
    # the path to a working folder below it stays accessible
    closed: Sequence[str] = () if is_crossed else ("--perms", "0000")
    return _Mount(path, (*closed, "--tmpfs", str(path)), is_closed=True)


def _bound(path: Path, *, is_writable: bool) -> _Mount:
    # a path that has disappeared meanwhile needs no mount
    return _Mount(path, ("--bind-try" if is_writable else "--ro-bind-try", str(path), str(path)))
