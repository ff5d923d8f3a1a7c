"""Apply prepared changes to files, exactly as shown or not at all.

A change has a path below the working folder and the contents before and after. It is only made if the
contents are still the same, with a temporary file in the same folder that is synced and renamed. Every folder
on the path is opened without following symlinks, so that replacing one with a link has no effect.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rolling_chat.messages import GONE, FileTouch
from rolling_chat.text import printable
from rolling_chat.tools.base import ToolContext, ToolError
from rolling_chat.tools.confine import resolve_parent
from rolling_chat.tools.leftover_files import temporary_name

MAX_EDITED_BYTES = 20_000_000
"""The size above which a file is not edited, because its diff could not be shown."""

_NEW_FILE_MODE = 0o666  # before the user's umask
_HAS_DIR_FD = os.open in os.supports_dir_fd  # not on Windows, where whole paths are used
_HAS_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_RIGHTS = 0o777  # a written file loses its setuid and setgid bits, as after any write on Unix
_FOLDER = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
# O_BINARY: otherwise Windows converts line ends
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FILE
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The contents of a path: a regular file's bytes and mode, or a symlink's target.

    A `mode` of None is that of a new file with the user's umask.
    """

    data: bytes
    mode: int | None = None
    is_link: bool = False

    @property
    def sha256(self) -> str:
        """The SHA-256 hash of the bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    def rewritten(self, data: bytes) -> FileVersion:
        """Return this version after a write of `data`."""
        mode = None if self.mode is None else self.mode & _RIGHTS
        return FileVersion(data, mode, self.is_link)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path (absolute, with a resolved folder) before and after; None if nothing exists there."""

    path: Path
    before: FileVersion | None
    after: FileVersion | None


class ChangedMeanwhileError(ToolError):
    """A change that was not made because the file has changed since the change was prepared."""


def locate(path: str, context: ToolContext) -> Path:
    """Return the absolute path that `path` names below the working folder; the file need not exist.

    Its folder is resolved, but not its last part, which may be a symlink. Raises ToolError for a path outside
    the folder, and for a name with control characters.
    """
    found = resolve_parent(path, context)
    if not str(found.relative_to(context.folder.resolve())).isprintable():
        raise ToolError(f"The name “{printable(path, 200)}” has control characters; choose another.")
    return found


def read_version(path: Path, context: ToolContext, *, writable: bool = False) -> FileVersion | None:
    """Return the version at a path from `locate`; None if nothing exists there.

    Raises ToolError if it is neither a regular file nor a symlink, cannot be read or is too large, or if it
    must be `writable` and is write-protected.
    """
    root = context.folder.resolve()
    if path == root:
        raise ToolError(f"{_name(path)} is a folder.")
    try:
        with _open_folder(path.parent, root) as folder:
            found = _read(path, folder)
            if writable:
                _require_writable(path, found, folder)
            return found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{_name(path)} cannot be read: {_why(error)}.") from None


def apply_changes(changes: Sequence[FileChange], context: ToolContext) -> tuple[FileTouch, ...]:
    """Make all changes or none, and return the files that were written.

    Raises ChangedMeanwhileError if a file has changed, and ToolError if one cannot be written; the changes
    made before that are undone.
    """
    made: list[FileChange] = []
    root = context.folder.resolve()
    folders = _Folders()
    try:
        for change in changes:
            _require_unchanged(change, read_version(change.path, context))
            _make(change, root, folders)
            made.append(change)
    except (OSError, ToolError) as error:
        for change in reversed(made):
            with contextlib.suppress(OSError, ToolError):
                _make(_undoing(change), root, folders)
        folders.remove(root)
        if isinstance(error, ToolError):
            raise
        raise ToolError(
            f"{_name(change.path)} cannot be written: {_why(error)}. Nothing was changed."
        ) from None
    return tuple(
        FileTouch(str(change.path), "written", change.after.sha256 if change.after is not None else GONE)
        for change in changes
    )


@dataclass(slots=True)
class _Folders:
    """The folders that changes have created, to be removed if the changes are undone."""

    made: list[Path] = field(default_factory=list)

    def make(self, folder: Path, root: Path) -> None:
        missing = []
        while folder != root and not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            with _open_folder(one.parent, root) as above:
                os.mkdir(_entry(one, above), dir_fd=above)
            self.made.append(one)

    def remove(self, root: Path) -> None:
        for one in reversed(self.made):
            with contextlib.suppress(OSError), _open_folder(one.parent, root) as above:
                os.rmdir(_entry(one, above), dir_fd=above)


def remove_folders(folders: Sequence[Path], context: ToolContext) -> None:
    """Remove those folders that are empty, innermost first, without following symlinks."""
    _Folders(list(reversed(folders))).remove(context.folder.resolve())


def _undoing(change: FileChange) -> FileChange:
    """Return the change that undoes one, ignoring the mode, which not every file system keeps."""
    made = None if change.after is None else replace(change.after, mode=None)
    return FileChange(change.path, made, change.before)


def _require_unchanged(change: FileChange, now: FileVersion | None) -> None:
    before = change.before
    if before is not None and now is not None and before.mode is None:
        now = replace(now, mode=None)
    if now == before:
        return
    name = _name(change.path)
    if now is None:
        raise ChangedMeanwhileError(f"{name} is gone since it was read: nothing was changed. Look again.")
    if change.before is None:
        raise ChangedMeanwhileError(f"{name} exists by now: nothing was changed. Read it first.")
    raise ChangedMeanwhileError(f"{name} was changed by somebody else: nothing was changed. Read it again.")


def _make(change: FileChange, root: Path, folders: _Folders) -> None:
    folders.make(change.path.parent, root)
    with _open_folder(change.path.parent, root) as folder:
        if change.after is not None:
            _put(change, change.after, folder)
        else:
            _require_unchanged(change, _read_if_any(change.path, folder))
            os.unlink(_entry(change.path, folder), dir_fd=folder)
        if folder is not None:
            with contextlib.suppress(OSError):  # some file systems cannot sync a folder
                os.fsync(folder)


def _put(change: FileChange, version: FileVersion, folder: int | None) -> None:
    """Replace the contents of a path atomically."""
    path, before = change.path, change.before
    temporary = _entry(path.with_name(temporary_name()), folder)
    name = _entry(path, folder)
    try:
        if version.is_link:
            os.symlink(os.fsdecode(version.data), temporary, dir_fd=folder)
        else:
            _write(temporary, version, folder, owner=None if before is None else _owner(name, folder))
        if before is None and not version.is_link and _link(temporary, name, folder):
            return
        # check as late as possible: somebody may have saved the file while the temporary one was written
        now = _read_if_any(path, folder)
        _require_unchanged(change, now)
        _require_writable(path, now, folder)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        raise ChangedMeanwhileError(
            f"{_name(path)} exists by now: nothing was changed. Read it first."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _link(temporary: str, name: str, folder: int | None) -> bool:
    """Link a file to its name; return False if links are not supported. Raises FileExistsError."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        return False
    return True


def _require_writable(path: Path, found: FileVersion | None, folder: int | None) -> None:
    """Raise ToolError if a file is write-protected, although write access to its folder would suffice."""
    if found is None or found.is_link:
        return
    if not os.access(_entry(path, folder), os.W_OK, dir_fd=folder, effective_ids=_HAS_EFFECTIVE_IDS):
        raise ToolError(f"{_name(path)} is write-protected; it cannot be edited.")


def _read_if_any(path: Path, folder: int | None) -> FileVersion | None:
    try:
        return _read(path, folder)
    except FileNotFoundError:
        return None


def _write(temporary: str, version: FileVersion, folder: int | None, owner: tuple[int, int] | None) -> None:
    mode = _NEW_FILE_MODE if version.mode is None else 0o600
    descriptor = os.open(temporary, _CREATE, mode, dir_fd=folder)
    try:
        left = memoryview(version.data)
        while left:
            left = left[os.write(descriptor, left) :]
        if owner is not None and hasattr(os, "fchown"):
            with contextlib.suppress(OSError):  # only root can give a file to another user
                os.fchown(descriptor, *owner)
        if version.mode is not None:
            _set_mode(descriptor, temporary, version.mode & _RIGHTS)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _owner(name: str, folder: int | None) -> tuple[int, int] | None:
    """Return the user and group ids of a file; None if it does not exist."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_uid, found.st_gid


def _set_mode(descriptor: int, path: str, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)
    else:
        Path(path).chmod(mode)


def _read(path: Path, folder: int | None) -> FileVersion:
    name = _entry(path, folder)
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return FileVersion(os.fsencode(os.readlink(name, dir_fd=folder)), 0o777, is_link=True)
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{_name(path)} is a folder.")
    if not stat.S_ISREG(found.st_mode):  # opening a device may have effects
        raise ToolError(f"{_name(path)} is not a regular file.")
    descriptor = os.open(name, _READ, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        opened = os.fstat(file.fileno())
        if not stat.S_ISREG(opened.st_mode):
            raise ToolError(f"{_name(path)} is not a regular file.")
        data = file.read(MAX_EDITED_BYTES + 1)
    if len(data) > MAX_EDITED_BYTES:
        raise ToolError(
            f"{_name(path)} is larger than {MAX_EDITED_BYTES // 1_000_000} MB; it cannot be edited."
        )
    return FileVersion(data, stat.S_IMODE(opened.st_mode))


@contextmanager
def _open_folder(folder: Path, root: Path) -> Iterator[int | None]:
    """Open a folder below `root` part by part, without following symlinks. Raises OSError.

    Yield None if folders cannot be opened; then `_entry` returns whole paths.
    """
    if not _HAS_DIR_FD:
        yield None
        return
    descriptor = os.open(root, _FOLDER)
    try:
        for part in folder.relative_to(root).parts:
            following = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
        yield descriptor
    finally:
        os.close(descriptor)


def _entry(path: Path, folder: int | None) -> str:
    """Return a path for system calls: relative to its open folder, or whole."""
    return str(path) if folder is None else path.name


def _name(path: Path) -> str:
    return f"“{printable(path.name, 200)}”"


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
