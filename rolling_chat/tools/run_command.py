"""run_command: runs a shell command in the working folder, with the user's permission."""

from __future__ import annotations

import base64
import errno
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Ending, Json, JsonObject
from rolling_chat.programs import find_program
from rolling_chat.tools.background import BACKGROUND, unconfined
from rolling_chat.tools.base import (
    ToolContext,
    ToolError,
    ToolResult,
    function_schema,
    read_count,
    read_flag,
    read_text,
)
from rolling_chat.tools.decoding import decode
from rolling_chat.tools.input_requests import asks_for_input
from rolling_chat.tools.process import Ended, run_process
from rolling_chat.tools.sandbox.sandbox import Enclosed, told_of_moved

DEFAULT_TIMEOUT = 120  # seconds
MAX_TIMEOUT = 3600  # seconds

_ENDED = re.compile(r"\[(exit code (\d+)|killed by signal \w+|killed: not done after \d+ seconds)\]")
_OWN_LINES = 5  # last lines: exit code, leftover processes, forbidden files, input request, sandbox

# the end of a PowerShell script: exit with 0 if its last statement succeeded, else with the last exit code
_EXIT = "exit $(if ($?) { 0 } elseif ($LASTEXITCODE) { $LASTEXITCODE } else { 1 })"
_SHELL = "PowerShell" if sys.platform == "win32" else "the shell"

_ASKED = (
    "[it asked for input; there is none: give what it needs by options, files or variables, "
    "or ask the user to run it]"
)
_MAX_NAMED = 3  # processes named with their commands

# There is no terminal, so programs must not page, ask or draw.
_QUIET = {
    "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
}  # fmt: skip

_DESCRIPTION = (
    f"Run a command of {_SHELL} and get its output. It has no input and no terminal, and is killed after "
    f"`timeout` seconds: {DEFAULT_TIMEOUT}, at most {MAX_TIMEOUT}."
)


@dataclass(frozen=True, slots=True)
class RunCommand:
    """The tool `run_command(command, timeout)`."""

    name: str = "run_command"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            _DESCRIPTION,
            {
                "command": {"type": "string"},
                "timeout": {"type": "integer"},
                "background": {"type": "boolean", "description": "Get an id at once; no timeout"},
            },
            required=("command",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the exact command for the shell. Raises ToolError if it cannot be run."""
        return _read_command(arguments)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run a command; return its output and exit code. After the timeout, kill everything it started."""
        command = _read_command(arguments)
        timeout = min(read_count(arguments, "timeout", default=DEFAULT_TIMEOUT) or 1, MAX_TIMEOUT)
        try:
            if read_flag(arguments, "background"):
                return await _start_in(context, command)
            ended, moved = await _run_in(context, shell_line(command, context), timeout)
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {_why(error)}.") from None
        presented = _present(ended, timeout, is_sandboxed=context.sandbox is not None)
        asked = [_ASKED] if ended.code and asks_for_input(command, presented) else []
        text = "\n".join([presented, *(f"[{told_of_moved(path)}]" for path in moved), *asked])
        return ToolResult(text, Ending.FAILED if ended.timed_out else Ending.COMPLETE)


async def _run_in(context: ToolContext, line: Sequence[str], timeout: int) -> tuple[Ended, Sequence[Path]]:  # noqa: ASYNC109
    """Run the shell, in the sandbox if there is one; also return the files it moved away. Raises OSError."""
    async with _enclosed(context, line) as enclosed:
        ended = await run_process(
            enclosed.command,
            folder=context.folder,
            environ=enclosed.environ,
            timeout=timeout,
            on_output=context.on_output,
            is_sandboxed=context.sandbox is not None,
        )
    return ended, enclosed.moved


async def _start_in(context: ToolContext, command: str) -> ToolResult:
    """Start a command in the background. Raises OSError."""
    enclosing = _enclosed(context, shell_line(command, context))
    is_sandboxed = context.sandbox is not None
    started = await BACKGROUND.start(
        command, context.session, enclosing, context.folder, is_sandboxed=is_sandboxed
    )
    parts = [f"{started.id} runs in the background; command_output shows its output and ends it"]
    if context.sandbox is not None and not context.sandbox.has_network:
        parts.append(
            "it has no network, so that nothing can connect to it: only a rule of the user's changes that"
        )
    return ToolResult(f"[{'; '.join([*parts, 'you are told when it is over'])}]")


def _enclosed(context: ToolContext, line: Sequence[str]) -> AbstractAsyncContextManager[Enclosed]:
    """Return the context to run a command in: the sandbox, if there is one."""
    environ = {**context.environ, **_QUIET}
    if context.sandbox is None:
        return unconfined(line, environ)
    return context.sandbox.around(line, context.folder, environ)


def shell_line(command: str, context: ToolContext) -> list[str]:
    """Return the shell that runs `command`, and its arguments. Raises OSError if there is none."""
    if sys.platform == "win32":
        for name in ("pwsh", "powershell"):
            if shell := find_program(name, context.environ, context.folder):
                # encoded, so that quoting on the command line cannot change it
                script = base64.b64encode(f"{command}\n{_EXIT}".encode("utf-16-le")).decode()
                return [shell, "-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", script]
        raise FileNotFoundError(errno.ENOENT, "PowerShell was not found")
    else:  # noqa: RET506 - mypy skips the branch of the other system
        return [find_program("bash", context.environ, context.folder) or "/bin/sh", "-c", command]


def outcome_of(result: str) -> str:
    """Return how a command failed, from its result: `exit 1`, `killed by SIGTERM`; empty if it did not."""
    # only the last lines are the tool's own: the output before them may contain anything
    for line in reversed(result.rsplit("\n", _OWN_LINES)[-_OWN_LINES:]):
        ended = _ENDED.fullmatch(line)
        if ended:
            return "" if ended[2] == "0" else f"exit {ended[2]}" if ended[2] else ended[1]
    return ""


def _read_command(arguments: JsonObject) -> str:
    command = read_text(arguments, "command")
    if "\x00" in command:
        raise ToolError("The argument 'command' holds a NUL character, which no shell takes.")
    try:
        os.fsencode(command)
    except UnicodeEncodeError:
        raise ToolError("The argument 'command' holds half a character, which no shell takes.") from None
    return command


def _present(ended: Ended, timeout: int, *, is_sandboxed: bool) -> str:
    head, tail = ended.output.parts
    if ended.output.left_out:
        text = f"{decode(head)}\n[… {ended.output.left_out:,} bytes left out …]\n{decode(tail)}"
    else:
        text = decode(head + tail)
    lines = [text.rstrip("\n")] if text.strip() else ["[no output]"]
    if ended.timed_out:
        lines.append(f"[killed: not done after {timeout} seconds]")
    elif ended.code < 0:
        lines.append(f"[killed by signal {_signal_name(-ended.code)}]")
    else:
        lines.append(f"[exit code {ended.code}]")
    if ended.left:
        named = ", ".join(str(child) for child in ended.left[:_MAX_NAMED])
        more = f" and {len(ended.left) - _MAX_NAMED} more" if len(ended.left) > _MAX_NAMED else ""
        numbers = " ".join(str(child.pid) for child in ended.left)
        # commands in another sandbox cannot reach processes in this one
        end = "the user can end them (/processes)" if is_sandboxed else f"kill {numbers} ends them"
        lines.append(f"[it left processes running in the background: {named}{more}; {end}]")
    return "\n".join(lines)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
