"""Decide what a sandboxed command may access; the system's sandbox program enforces it.

Paths are checked with `os.path`, which reports inaccessible ones as missing.
"""
# ruff: noqa: PTH110, PTH112, PTH113, PTH114

from __future__ import annotations

import itertools
import os
import stat
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# below the home folder: keys, tokens, passwords, cookies and shell histories
_SECRETS = (
    ".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass",
    ".my.cnf", ".git-credentials", ".vault-token", ".password-store", ".Xauthority", ".ICEauthority",
    ".bash_history", ".zsh_history", ".psql_history", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".terraform.d/credentials.tfrc.json", ".claude", ".claude.json", ".codex",
    ".gemini", ".mozilla", ".thunderbird", ".config/git/credentials", ".config/gh", ".config/glab-cli",
    ".config/hub", ".config/gcloud", ".config/op", ".config/rclone", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".local/share/keyrings",
    ".local/share/kwalletd", ".local/share/opencode", "Library/Keychains", "Library/Cookies",
    "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
)  # fmt: skip
# variables that name other locations for them
_SECRET_VARIABLES = (
    "GNUPGHOME", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "KUBECONFIG", "DOCKER_CONFIG", "NETRC",
    "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GH_CONFIG_DIR", "PGPASSFILE",
)  # fmt: skip

TEMPORARY_FOLDERS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # the system's
_SOCKETS = ("tmux-*", ".X11-unix", ".ICE-unix", "ssh-*")  # of terminals, desktops and agents

# instructions for the model, and files that run by themselves, once the folder is trusted
_BROUGHT_ALONG = ("AGENTS.md", "CLAUDE.md", ".agents", ".claude", ".mcp.json")
_GIT_SETTINGS = ("config", "config.worktree", "commondir", "worktrees")
# it redirects git to other settings and hooks, and no stub can occupy it: git reads any file there
_COMMON = "commondir"
_MAX_FOLDERS = 2_000  # searched for repositories
_MAX_PROTECTED = 2_000  # paths; bubblewrap accepts 9,000 arguments, three for each
_NOT_LOOKED_THROUGH = frozenset({".git", "node_modules"})
_OF_SYSTEM = frozenset({"/proc", "/sys", "/dev", "/run"})
_NOT_MODULES = frozenset({"objects", "refs", "logs", "hooks", "info"})


@dataclass(frozen=True, slots=True)
class Walls:
    """The limits of one sandboxed command; every path is absolute and without symlinks.

    The command can write in `folder` (if `is_writable`) and `temporary`. It does not see the contents of the
    system's `shared_temporary` folders. `hidden` paths cannot be read. `read_only` paths in the folder cannot
    be changed, and `fixed` folders there cannot be renamed, which would move the read-only paths in them. At
    `stubs` nothing exists and nothing can be created. At `newcomers` nothing may be created either, but a
    stub would be visible in listings of the folder, so files that appear there are moved away afterwards.
    """

    folder: Path
    temporary: Path
    shared_temporary: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    read_only: Sequence[Path] = ()
    fixed: Sequence[Path] = ()
    stubs: Sequence[Path] = ()
    newcomers: Sequence[Path] = ()
    is_writable: bool = True
    has_network: bool = False


def plan_walls(
    folder: Path, temporary: Path, environ: Mapping[str, str], own: Iterable[Path], *, has_network: bool
) -> Walls:
    """Decide what a command in `folder` may access, reading folders; call it in a thread.

    `own` are the program's own files and folders.
    """
    folder, own = folder.resolve(), tuple(path.resolve() for path in own)
    is_writable = not _is_protected(folder, own)
    protected = _find_protected(folder) if is_writable else _Protected()
    secrets = (*secret_paths(environ), *_sockets(folder), *own)
    hidden = {path for path in secrets if path != folder and os.path.exists(path)}
    closed = {path for path in hidden if not folder.is_relative_to(path)}
    return Walls(
        folder,
        temporary.resolve(),
        TEMPORARY_FOLDERS,
        hidden=tuple(sorted(path for path in hidden if closed.isdisjoint(path.parents))),
        read_only=tuple(dict.fromkeys(protected.read_only)),
        fixed=tuple(dict.fromkeys(protected.fixed)),
        stubs=tuple(dict.fromkeys(protected.stubs)),
        newcomers=tuple(dict.fromkeys(protected.newcomers)),
        is_writable=is_writable,
        has_network=has_network,
    )


def _sockets(folder: Path) -> Iterator[Path]:
    """Yield the socket folders in the working folder, if that is itself a temporary folder of the system."""
    if folder in TEMPORARY_FOLDERS:
        yield from (path for pattern in _SOCKETS for path in folder.glob(pattern))


def secret_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files and folders of the user with keys and passwords, which need not exist."""
    homes = {environ.get("HOME", "")}
    with suppress(RuntimeError):
        homes.add(str(Path.home()))
    named = [Path(home, name) for home in sorted(homes) if home for name in _SECRETS]
    named += [Path(environ[name]) for name in _SECRET_VARIABLES if environ.get(name, "").startswith("/")]
    for path in named:
        with suppress(OSError, RuntimeError):  # a loop of links
            yield path.resolve()


def _is_protected(folder: Path, own: Sequence[Path]) -> bool:
    """Return whether the working folder itself is in a location where commands must not write."""
    parts = folder.parts
    if ".rolling-chat" in parts or any(folder.is_relative_to(path) for path in own):
        return True
    below_git = parts[parts.index(".git") + 1 :] if ".git" in parts else ()
    return not {"hooks", "worktrees"}.isdisjoint(below_git)


class _Protected:
    """The paths in the working folder that commands may not change or create."""

    def __init__(self) -> None:
        self.read_only: list[Path] = []
        self.fixed: list[Path] = []
        self.stubs: list[Path] = []
        self.newcomers: list[Path] = []

    @property
    def is_full(self) -> bool:
        """Whether no more paths can be added; a folder full of repositories must not make commands fail."""
        return len(self.read_only) + len(self.fixed) + len(self.stubs) > _MAX_PROTECTED


def _find_protected(folder: Path) -> _Protected:
    found = _Protected()
    for path in (folder / name for name in _BROUGHT_ALONG):
        if os.path.lexists(path):
            _protect(path, found, folder)
        else:
            found.newcomers.append(path)
    _protect(folder / ".rolling-chat", found, folder)
    git = folder / ".git"
    if _is_git_folder(folder):  # a bare repository, or the inside of one
        _protect_repository(folder, found)
    elif os.path.isdir(git) and not _is_empty(git):
        _protect_repository(git.resolve() if os.path.islink(git) else git, found)
    else:
        _protect(git, found, folder)
    for repository in itertools.takewhile(lambda _: not found.is_full, _repositories_below(folder)):
        inner = repository / ".git"
        ancestors = [path for path in repository.parents if path != folder and path.is_relative_to(folder)]
        found.fixed += [*ancestors, repository]
        if os.path.isdir(inner):
            _protect_repository(inner, found)
        else:
            found.read_only.append(inner)
    return found


def _protect(path: Path, found: _Protected, folder: Path) -> None:
    """Protect an existing file or folder, or the name of one that does not exist."""
    if os.path.islink(path):
        # the link itself cannot be protected, but its target can
        target = path.resolve()
        if os.path.exists(target) and target != folder and target.is_relative_to(folder):
            found.read_only.append(target)
    elif _is_empty(path) or not os.path.lexists(path):
        found.stubs.append(path)
    else:
        found.read_only.append(path)


def _protect_repository(git: Path, found: _Protected) -> None:
    """Protect the settings and hooks that decide which programs git runs, including those of submodules."""
    _protect_git(git, found)
    for module in itertools.takewhile(lambda _: not found.is_full, _modules(git)):
        found.fixed += [path for path in module.parents if path.is_relative_to(git / "modules")]
        _protect_git(module, found)


def _protect_git(git: Path, found: _Protected) -> None:
    if not os.path.isfile(git / "config"):
        found.read_only.append(git)
        return
    found.fixed.append(git)
    found.read_only += [git / name for name in _GIT_SETTINGS if os.path.lexists(git / name)]
    if not os.path.lexists(git / _COMMON):
        found.newcomers.append(git / _COMMON)
    hooks = git / "hooks"
    if os.path.lexists(hooks):
        found.read_only.append(hooks)
    else:
        found.stubs.append(hooks)


def _modules(git: Path) -> Iterator[Path]:
    """Yield the repositories of submodules, which are in git's own folder."""
    for here in _walk(git / "modules", _NOT_MODULES):
        if _is_git_folder(here):
            yield here


def _repositories_below(folder: Path) -> Iterator[Path]:
    """Yield the folders below `folder` that contain a `.git`."""
    for here in _walk(folder, _NOT_LOOKED_THROUGH):
        git = here / ".git"
        if here != folder and os.path.lexists(git) and not os.path.islink(git):
            yield here


def _walk(folder: Path, without: Container[str]) -> Iterator[Path]:
    """Yield `folder` and folders below it, nearest first, up to a limit."""
    waiting, seen = deque([folder]), 0
    while waiting and seen < _MAX_FOLDERS:
        here = waiting.popleft()
        seen += 1
        yield here
        below = [here / name for name in _folders_in(here) if name not in without]
        waiting += [path for path in below if str(path) not in _OF_SYSTEM]


def _folders_in(folder: Path) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


def _is_git_folder(path: Path) -> bool:
    return (
        os.path.isfile(path / "HEAD") and os.path.isfile(path / "config") and os.path.isdir(path / "objects")
    )


def _is_empty(path: Path) -> bool:
    """Return whether a path is an empty folder: with these names, a stub that was left behind."""
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode) and not any(path.iterdir())
    return False
