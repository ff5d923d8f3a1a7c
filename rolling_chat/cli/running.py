"""Run one command, and convert every failure to a line and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys

from rolling_chat.cli.exits import Exit, Failure, complain
from rolling_chat.cli.logs import start_logging
from rolling_chat.cli.options import Options
from rolling_chat.cli.parser import command_of
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.paths import find_paths

log = logging.getLogger(__name__)

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def run_command(options: Options) -> int:
    """Run the command that the options name; return its exit code. Never raises."""
    log_file = ""
    try:
        paths = find_paths(os.environ)
        log_file = str(start_logging(paths.log_file))
        code = command_of(options)(options, paths)
        if sys.stdout is not None:
            sys.stdout.flush()  # report write errors now, not at interpreter shutdown
        return code
    except Failure as failure:
        return complain(failure)
    except SettingsError as error:
        return complain(Failure(str(error), Exit.USAGE))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # the reader of the output closed it; the interpreter must not try to flush again
        sys.stdout = None
        return Exit.FAILED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            sys.stdout = None  # the interpreter must not try to flush again
            return complain(Failure(f"cannot write the output: {error.strerror}"))
        log.exception("the command failed")
        where = f"; details in {log_file}" if log_file else ""
        return complain(Failure(f"a fault of the program ({type(error).__name__}){where}"))
