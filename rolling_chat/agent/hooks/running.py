"""Run a hook as a process: its input, its sandbox, and its time limit."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from rolling_chat.agent.hooks.answers import HookAnswer, read_answer
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.turn.sandboxing import Sandboxing
from rolling_chat.messages import Json
from rolling_chat.redaction import without_secrets
from rolling_chat.settings.hook_settings import Hook
from rolling_chat.settings.load import IN_HOOK
from rolling_chat.text import exact, one_line
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.background import unconfined
from rolling_chat.tools.process import Output, run_process
from rolling_chat.tools.run_command import RunCommand, shell_line
from rolling_chat.tools.sandbox.sandbox import Enclosed

log = logging.getLogger("rolling_chat.agent.hooks")

_MAX_OUTPUT = 200_000  # bytes of a hook's output that are read
_AT_ONCE = 4  # hooks that run in parallel, for parallel calls


@dataclass(frozen=True, slots=True)
class HookRunner:
    """Runs hooks by the shell in the working folder, without the secrets of the environment.

    A project's hook runs in the sandbox, if there is one, like the model's commands. The user's own hooks do
    not.
    """

    runtime: Runtime
    permissions: Permissions
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def run(self, event: str, hook: Hook, payload: Mapping[str, Json]) -> HookAnswer:
        """Run a hook with `payload` on its input; return its answer, or one that reports its failure."""
        errors = Output(_MAX_OUTPUT)
        try:
            enclosing, is_sandboxed = await self._around(hook)
            async with self._slots, enclosing as enclosed:
                ended = await run_process(
                    enclosed.command,
                    folder=self.runtime.folder,
                    environ=enclosed.environ,
                    timeout=hook.timeout,
                    limit=_MAX_OUTPUT,
                    is_sandboxed=is_sandboxed,
                    standard_input=json.dumps(payload).encode(),
                    errors=errors,
                )
        except (OSError, ValueError) as error:
            return HookAnswer(fault=f"it could not be started: {one_line(str(error), 200)}")
        except ToolError as error:
            return HookAnswer(fault=one_line(str(error), 300))
        answer = read_answer(event, ended, errors, hook.timeout)
        log.info("%s hook %s: %s", event, name_of(hook), answer)
        return answer

    async def _around(self, hook: Hook) -> tuple[AbstractAsyncContextManager[Enclosed], bool]:
        """Return the context to run a hook in, and whether that is a sandbox.

        Raises ToolError if a sandbox is required and missing.
        """
        runtime = self.runtime
        secretless = without_secrets(runtime.environ, runtime.settings.agent.environment)
        environ = {**secretless, "CLAUDE_PROJECT_DIR": str(runtime.trust.root), IN_HOOK: "1"}
        line = shell_line(hook.command, ToolContext(runtime.folder, environ))
        if hook.is_own:
            return unconfined(line, environ), False
        confinement = await Sandboxing.of(runtime, self.permissions).of_call(RunCommand(), hook.command, {})
        if confinement.sandbox is None:
            return unconfined(line, environ), False
        return confinement.sandbox.around(line, runtime.folder, environ), True


def name_of(hook: Hook) -> str:
    """Return the name of a hook in lines for the user and the model: its command, in quotes."""
    return f"“{one_line(exact(hook.command), 60)}”"
