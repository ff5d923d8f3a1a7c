"""Run the user's own status command, which gets facts about the session and prints one line."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from rolling_chat.agent.runtime import Runtime
from rolling_chat.messages import JsonObject
from rolling_chat.redaction import without_secrets
from rolling_chat.tools import ToolContext
from rolling_chat.tools.decoding import decode
from rolling_chat.tools.process import run_process
from rolling_chat.tools.run_command import shell_line

log = logging.getLogger(__name__)

_TIMEOUT = 5.0  # seconds
_MAX_OUTPUT = 10_000  # bytes


async def run_status_command(runtime: Runtime, facts: JsonObject) -> str:
    """Run the command of `screen.status_command` with the facts as JSON on its input; return its first line.

    The command comes from the user's own settings and gets no secrets. A failure is reported as a line.
    """
    context = ToolContext(
        Path(runtime.folder), without_secrets(runtime.environ, runtime.settings.agent.environment)
    )
    try:
        ended = await run_process(
            shell_line(runtime.settings.screen.status_command, context),
            folder=context.folder,
            environ=context.environ,
            timeout=_TIMEOUT,
            limit=_MAX_OUTPUT,
            standard_input=json.dumps(facts).encode(),
        )
    except (OSError, ValueError) as error:
        log.warning("the status command could not be started: %s", error)
        return f"status_command could not be started: {error}"
    text = decode(ended.output.parts[0])
    if ended.timed_out or ended.code:
        why = "took more than 5 seconds" if ended.timed_out else f"failed (exit code {ended.code})"
        log.warning("the status command %s: %s", why, text)
        return f"status_command {why}; the log has its output"
    return text.strip("\r\n").partition("\n")[0]
