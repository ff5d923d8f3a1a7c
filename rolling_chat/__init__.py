"""Rolling Chat: a chat agent for the terminal that never runs out of context."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("rolling-chat")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0.0.0"
