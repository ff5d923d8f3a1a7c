"""Decide which commands run in the sandbox, which have network, and which may run again without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from rolling_chat.agent.permissions import Permissions, asked_by
from rolling_chat.agent.runtime import Runtime
from rolling_chat.events import (
    Emit,
    Noticed,
    Permission,
    PermissionAnswered,
    PermissionAsked,
    PermissionRequest,
)
from rolling_chat.messages import JsonObject, ToolCall
from rolling_chat.permissions.rules import COMMAND_TOOL
from rolling_chat.text import one_line
from rolling_chat.tools import Tool, ToolError, ToolResult
from rolling_chat.tools.base import read_flag
from rolling_chat.tools.run_command import outcome_of
from rolling_chat.tools.sandbox.failures import sign_of_sandbox
from rolling_chat.tools.sandbox.sandbox import Sandbox, find_sandbox

SandboxMode: TypeAlias = Literal["auto", "off", "required"]

_AGAIN = "The sandbox may have stopped it. Run it again without?"
_SANDBOX_NOTE = "it ran in a sandbox, which forbids to write outside the working folder{network}"


@dataclass(frozen=True, slots=True)
class Confinement:
    """How a command will run: its sandbox, if any, and a `remark` for the question about it."""

    sandbox: Sandbox | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sandboxing:
    """Decides by settings and rules how a command is confined. It needs permission all the same.

    `own` are the program's own files and folders, which commands in the sandbox cannot read. `asker` is the
    task that asks, if any.
    """

    mode: SandboxMode
    own: Sequence[Path]
    permissions: Permissions
    asker: str = ""

    @classmethod
    def of(cls, runtime: Runtime, permissions: Permissions, asker: str = "") -> Sandboxing:
        """Create it from the settings."""
        own = (*runtime.paths.own, runtime.paths.log_file.parent)
        return cls(runtime.settings.agent.sandbox, own, permissions, asker)

    async def of_call(self, tool: Tool, command: str, arguments: JsonObject) -> Confinement:
        """Return how a call will run. Raises ToolError if a sandbox is required and there is none."""
        if tool.name != COMMAND_TOOL:
            return Confinement()
        confinement = await self._of_command(command)
        if not read_flag(arguments, "background"):
            return confinement
        return replace(confinement, remark=", ".join(filter(None, ("in the background", confinement.remark))))

    async def _of_command(self, command: str) -> Confinement:
        if self.mode == "off":
            return Confinement()
        program = await asyncio.to_thread(find_sandbox)
        if program.kind:
            has_network = self.permissions.lets_out(command)
            sandbox = Sandbox(program, tuple(self.own), has_network)
            return Confinement(sandbox, "with network" if has_network else "")
        if self.mode == "required":
            raise ToolError(
                f'Not run: agent.sandbox is "required", and there is no sandbox here ({program.missing}).'
            )
        return Confinement(remark="no sandbox here")

    async def offers_again(
        self, call: ToolCall, command: str, result: ToolResult, confinement: Confinement, emit: Emit
    ) -> bool | None:
        """Ask whether to run a command again without the sandbox that may have stopped it.

        Return None if the sandbox did not stop it, and False if nobody may be asked.
        """
        sandbox = confinement.sandbox
        if sandbox is None or not outcome_of(result.text):
            return None
        sign = sign_of_sandbox(result.text, has_network=sandbox.has_network)
        if not sign:
            return None
        if self.mode == "required" or self.permissions.listener.ask is None:
            return False
        request = PermissionRequest(call, asked_by(self.asker, _AGAIN), command, None)
        await emit(Noticed(f"In the sandbox: {one_line(sign, 200)}", warning=True))
        await emit(PermissionAsked(request))
        answer = await self.permissions.decide(request)
        await emit(PermissionAnswered(call))
        return answer.permission is not Permission.NO


def stopped(result: ToolResult, sandbox: Sandbox) -> ToolResult:
    """Return the result of a command with a line that tells the model why it may have failed."""
    note = _SANDBOX_NOTE.format(network="" if sandbox.has_network else ", and has no network")
    return replace(result, text=f"{result.text}\n[{note}; it was not run without it]")


def repeated(result: ToolResult) -> ToolResult:
    """Return the result of a command that ran again without the sandbox, with a line that says so."""
    return replace(result, text=f"[the sandbox stopped it; this is without]\n{result.text}")
