"""The skills and slash commands that users and projects wrote, turned into messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.agent.turn.sandboxing import Sandboxing
from rolling_chat.events import Permission, PermissionRequest
from rolling_chat.extensions.custom_commands import CustomCommand, CustomCommands, read_custom_commands
from rolling_chat.extensions.skills import Skill
from rolling_chat.mentions import without_marks
from rolling_chat.messages import ToolCall
from rolling_chat.permissions.rules import propose_rule
from rolling_chat.redaction import without_secrets
from rolling_chat.text import one_line
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.run_command import RunCommand

_MAX_OUTPUT = 30_000  # characters of the output of one shell command in a text


class SessionExtensions:
    """The custom commands of one session, and its skills as the user calls them.

    They are read again with every turn, like instructions.
    """

    def __init__(self, runtime: Runtime, state: SessionState, permissions: Permissions) -> None:
        self._runtime = runtime
        self._state = state
        self._permissions = permissions
        self._reported: set[str] = set()
        self._commands = CustomCommands()
        self.read()

    @property
    def commands(self) -> tuple[CustomCommand, ...]:
        """The commands that users and projects wrote."""
        return self._commands.all

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that the user can call."""
        return self._state.setup.skills.all

    def read(self) -> None:
        """Read the commands again."""
        self._commands = read_custom_commands(self._runtime.trust, self._runtime.paths)

    @property
    def faults(self) -> tuple[str, ...]:
        """Lines about commands and skills that are ignored or used only in part."""
        return (*self._state.setup.skills.faults, *self._commands.faults)

    def take_news(self, more: Sequence[str] = ()) -> list[str]:
        """Return the fault lines, and those in `more`, that have not been returned before."""
        news = [line for line in (*self.faults, *more) if line not in self._reported]
        self._reported.update(news)
        return news

    async def called_by(self, text: str) -> list[Insertion]:
        """Return what a text inserts if it begins with a slash and the name of a command or a skill."""
        name, _, arguments = text.removeprefix("/").partition(" ")
        if not text.startswith("/") or "\n" in name:
            return []
        for command in self.commands:
            if command.name == name.lower():
                return [await self.insert_command(command, arguments.strip())]
        return [await self.insert_skill(skill) for skill in self.skills if skill.name == name.lower()]

    async def insert_skill(self, skill: Skill) -> Insertion:
        """Return what a skill adds to a message that calls it."""
        text = without_marks(await asyncio.to_thread(skill.full_text))
        return Insertion(skill.source, "skill", f"The skill {skill.name}, which I call, says:\n\n{text}")

    async def insert_command(self, command: CustomCommand, arguments: str) -> Insertion:
        """Return what a custom command adds to a message, running the shell commands in its text.

        Each of these needs the same permission as a command of the model's.
        """
        expanded = command.expand(arguments)
        outputs = [await self._output_of(shell, command) for shell in expanded.shell]
        text = expanded.joined(outputs)
        return Insertion(
            command.source, "command", f"The command /{command.name}, which I call, says:\n\n{text}"
        )

    async def _output_of(self, shell: str, command: CustomCommand) -> str:
        """Return the output of a shell command in the text, or in brackets why it was not run."""
        runtime, tool = self._runtime, RunCommand()
        environment = without_secrets(runtime.environ, runtime.settings.agent.environment)
        context = ToolContext(runtime.folder, environment, session=self._state.info.id)
        try:
            confinement = await Sandboxing.of(runtime, self._permissions).of_call(tool, shell, {})
            if refusal := await self._refusal(tool, shell, command, confinement.remark):
                return refusal
            result = await tool.run({"command": shell}, replace(context, sandbox=confinement.sandbox))
        except ToolError as error:
            return f"[`{shell}` was not run: {error}]"
        if len(result.text) <= _MAX_OUTPUT:
            return result.text
        half = _MAX_OUTPUT // 2
        return (
            f"{result.text[:half]}\n[… {len(result.text) - 2 * half:,} characters …]\n{result.text[-half:]}"
        )

    async def _refusal(self, tool: RunCommand, shell: str, command: CustomCommand, remark: str) -> str:
        detail = tool.describe({"command": shell})
        verdict = self._permissions.verdict(tool, detail)
        if verdict == "refused":
            return f"[`{shell}` was not run. {self._permissions.refusal(tool, detail)}]"
        if verdict == "ask":
            title = f"Allow run_command, for /{command.name}?" + (f" ({remark})" if remark else "")
            call = ToolCall("", tool.name, json.dumps({"command": shell}))
            request = PermissionRequest(call, title, detail, propose_rule(tool.name, detail, ()))
            answer = await self._permissions.decide(request)
            if answer.permission is Permission.NO:
                return f"[`{one_line(shell, 200)}` was not run: the user refused it]"
        return ""
