"""The log file, which gets all details, so that no traceback reaches the screen or stdout."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path

_MAX_BYTES = 2_000_000
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def start_logging(log_file: Path) -> Path:
    """Write the program's log and Python's warnings to `log_file`, or nowhere if that cannot be written.

    Keys from the environment are redacted.
    """
    handler: logging.Handler
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = _LogFile(log_file)
    except OSError:
        handler = logging.NullHandler()
    handler.addFilter(_Redacting())
    logging.captureWarnings(True)
    logging.raiseExceptions = False
    for name in ("rolling_chat", "py.warnings", "asyncio"):
        logger = logging.getLogger(name)
        for former in logger.handlers[:]:
            logger.removeHandler(former)
            former.close()
        logger.addHandler(handler)
        logger.propagate = False
    logging.getLogger("rolling_chat").setLevel(logging.INFO)
    return log_file


def log_libraries() -> None:
    """Write the root logger's records, that is libraries' warnings and errors, only to the file."""
    logging.getLogger().handlers[:] = logging.getLogger("rolling_chat").handlers


def keep_out(secrets: Collection[str]) -> None:
    """Redact more secrets in the log than those of the environment."""
    for handler in logging.getLogger("rolling_chat").handlers:
        for redacting in handler.filters:
            if isinstance(redacting, _Redacting):
                redacting.add(secrets)


class _LogFile(logging.Handler):
    """A handler that opens the log file at the first record, as most short commands log nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            # the import loads sockets and pickle
            from rolling_chat.cli.log_file import PrivateRotatingFileHandler

            self._file = PrivateRotatingFileHandler(
                self._path,
                maxBytes=_MAX_BYTES,
                backupCount=1,
                encoding="utf-8",
                errors="backslashreplace",
                delay=True,
            )
            self._file.setFormatter(logging.Formatter(_FORMAT))
        self._file.handle(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


class _Redacting(logging.Filter):
    """A filter that redacts the environment's keys, which are collected at the first record."""

    def __init__(self) -> None:
        super().__init__()
        self._redacting: logging.Filter | None = None
        self._more = frozenset[str]()

    def add(self, secrets: Collection[str]) -> None:
        """Redact these secrets as well."""
        self._more |= frozenset(secrets)
        self._redacting = None

    def filter(self, record: logging.LogRecord) -> bool:
        if self._redacting is None:
            # imports the list of providers, so only after the first paint
            from rolling_chat.redaction import RedactingFilter, secrets_in

            self._redacting = RedactingFilter(secrets_in(os.environ) | self._more)
        return bool(self._redacting.filter(record))
