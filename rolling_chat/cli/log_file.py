"""The handler that writes the log file."""

from __future__ import annotations

from logging.handlers import RotatingFileHandler

from rolling_chat.private_files import PrivateFileHandler


class PrivateRotatingFileHandler(PrivateFileHandler, RotatingFileHandler):
    """A log handler whose file has mode 0600 and is rotated when it has grown large."""
