"""Rolling Chat: a chat agent for the terminal that never runs out of context.

`open_chat` is the Python API, see `rolling_chat.api`. `Replayer` plans the requests of transcripts.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs 10 ms at every start
if TYPE_CHECKING:
    from typing import Any

# imported by name on first use: to import-linter, this package must not depend on the layers above it
_MODULES = {
    "Answer": "rolling_chat.api",
    "ChatError": "rolling_chat.agent",
    "OpenChat": "rolling_chat.api",
    "Replayer": "rolling_chat.agent.replaying",
    "open_chat": "rolling_chat.api",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_MODULES[name]), name)


def _version() -> str:
    """Return the version, imported only on demand: importlib.metadata would cost 50 ms at every start."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("rolling-chat")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0.0.0"
