"""The log file: details go there, so that the screen and stdout never see a traceback."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from rolling_chat.private_files import PrivateRotatingFileHandler

_MAX_BYTES = 2_000_000
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def start_logging(log_file: Path) -> Path:
    """Write the program's log and Python's warnings to `log_file`, or nowhere if that cannot be written.

    The keys in the environment are kept out of it.
    """
    handler: logging.Handler
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = PrivateRotatingFileHandler(
            log_file,
            maxBytes=_MAX_BYTES,
            backupCount=1,
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
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


class _Redacting(logging.Filter):
    """Keeps the keys of the environment out; they are looked for when there is something to log."""

    def __init__(self) -> None:
        super().__init__()
        self._redacting: logging.Filter | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if self._redacting is None:
            # needs the list of providers: the screen is painted before
            from rolling_chat.redaction import RedactingFilter, secrets_in

            self._redacting = RedactingFilter(secrets_in(os.environ))
        return bool(self._redacting.filter(record))
