"""The command line: chat, `-p`, sessions, doctor. Every failure is one line and an exit code.

Each command imports what it needs when it runs, so that none waits for another's.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Sequence

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.logs import start_logging
from rolling_chat.cli.parser import command_of, read_options
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import SettingsError

log = logging.getLogger(__name__)

__all__ = ["run"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns its exit code and never raises."""
    log_file = ""
    try:
        options = read_options(argv)
        import os

        paths = find_paths(os.environ)
        log_file = str(start_logging(paths.log_file))
        code = command_of(options)(options, paths)
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is known now, not when the interpreter ends
        return code
    except Failure as failure:
        return _complain(str(failure), failure.code)
    except SettingsError as error:
        return _complain(str(error), Exit.USAGE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # whoever read our output has enough of it; the interpreter must not try to flush again
        sys.stdout = None
        return Exit.FAILED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            sys.stdout = None  # nor may it try to flush what is left
            return _complain(f"cannot write the output: {error.strerror}", Exit.FAILED)
        log.exception("the command failed")
        where = f"; details in {log_file}" if log_file else ""
        return _complain(f"a fault of the program ({type(error).__name__}){where}", Exit.FAILED)


def _complain(line: str, code: int) -> int:
    print(f"rolling-chat: {line}", file=sys.stderr)
    return code
