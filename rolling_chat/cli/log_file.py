"""The handler that writes the log file."""

from __future__ import annotations

from logging.handlers import RotatingFileHandler

from rolling_chat.private_files import PrivateFileHandler


class PrivateRotatingFileHandler(PrivateFileHandler, RotatingFileHandler):
    """Logs to a file of mode 0600, and begins another when it has grown large."""
