"""A pytest plugin that takes away what only POSIX systems have: `pytest -p tests.support.without_posix`.

It stands for a Windows machine as far as the names in the standard library and `sys.platform` go; libraries
are imported before, for theirs are of the machine that this really runs on, as are the few names that the
standard library's own `subprocess` needs there.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import select
import signal
import sys
from types import ModuleType

_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
_NAMES: dict[ModuleType, tuple[str, ...]] = {
    os: (
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fchown", "fork",
        "getpgid", "getsid", "killpg", "mkfifo", "pread", "pwrite", "register_at_fork", "setsid",
    ),
    signal: ("ITIMER_REAL", "SIGALRM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGUSR1", "setitimer"),
    select: ("poll",),
}  # fmt: skip
_LIBRARIES = (
    "asyncio.subprocess", "hypothesis", "litellm", "openai.resources", "textual.app",
    "textual.drivers.headless_driver", "textual.drivers.linux_driver", "textual.pilot", "textual.widgets",
)  # fmt: skip


def pytest_configure() -> None:
    """Take the names away before any module of ours is imported."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    for library in _LIBRARIES:
        importlib.import_module(library)
    for module, names in _NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in _MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # so an import of it fails
    asyncio.AbstractEventLoop.add_signal_handler = _no_signals  # type: ignore[method-assign]
    sys.platform = "win32"  # type: ignore[misc]


def _no_signals(*_: object) -> None:
    raise NotImplementedError
