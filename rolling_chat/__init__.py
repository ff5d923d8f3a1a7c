"""Rolling Chat: a chat agent for the terminal that never runs out of context."""

from __future__ import annotations


def __getattr__(name: str) -> str:
    """`__version__`, read when it is asked for: importlib.metadata costs 50 ms at every start."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("rolling-chat")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0.0.0"
