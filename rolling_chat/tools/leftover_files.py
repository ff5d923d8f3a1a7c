"""Name the temporary files of writes, and remove those that killed processes left behind.

A name contains the machine and the process that made the file, so that a file still being written is never
removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rolling_chat.confined_files import CAN_WALK, FOLDER, walk_to
from rolling_chat.process_identity import machine_mark, may_run

_NAME = re.compile(r"\.rolling-chat-(?P<machine>[0-9a-f]{8})-(?P<pid>[1-9]\d{0,9})-[0-9a-f]{16}")
_USER: int = getattr(os, "geteuid", int)()
_DAY = 86_400.0  # seconds after which a file made on another machine, or before a restart, is abandoned


def temporary_name() -> str:
    """Return a new name for a file that is written and then renamed."""
    return f".rolling-chat-{machine_mark()}-{os.getpid()}-{secrets.token_hex(8)}"


def remove_leftovers(folders: Iterable[Path], root: Path) -> int:
    """Remove the files of killed writes in folders below a resolved root; return their number.

    Only files with our own names and of our own user are removed, if their process has ended. No symlink is
    followed.
    """
    return sum(_clean(folder, root) for folder in folders) if CAN_WALK else 0


def _clean(folder: Path, root: Path) -> int:
    try:
        descriptor = walk_to(folder, root, FOLDER)
    except (OSError, ValueError):  # it is gone, or has become a link
        return 0
    removed = 0
    try:
        for name in os.listdir(descriptor):  # noqa: PTH208 - of an open folder
            if not _NAME.fullmatch(name):
                continue
            with suppress(OSError):
                if _is_left(name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)):
                    os.unlink(name, dir_fd=descriptor)
                    removed += 1
    except OSError:
        return removed
    finally:
        os.close(descriptor)
    return removed


def _is_left(name: str, found: os.stat_result) -> bool:
    match = _NAME.fullmatch(name)
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)
    if match is None or not is_plain or found.st_uid != _USER:
        return False
    if match["machine"] == machine_mark():
        return not may_run(int(match["pid"]))
    return found.st_mtime < time.time() - _DAY
