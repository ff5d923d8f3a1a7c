"""skill: returns the text of a skill for a matching task."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text

SKILL = "skill"


@dataclass(frozen=True, slots=True)
class UseSkill:
    """The tool `skill(name)`; the system prompt lists the skills."""

    name: str = SKILL
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        properties: dict[str, Json] = {"name": {"type": "string"}}
        return function_schema(self.name, "Read what a skill says.", properties, required=("name",))

    def describe(self, arguments: JsonObject) -> str:
        """Return the name of the skill."""
        return f"{self.name} {arguments.get('name')}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the text of a skill, and the names of its files."""
        name = read_text(arguments, "name")
        skills = context.skills
        known = [skill.name for skill, _ in skills.listed] if skills is not None else []
        found = skills.find(name) if skills is not None else None
        if found is None or not found.for_model:
            there_is = ", ".join(known) or "none"
            raise ToolError(f"There is no skill {name[:100]!r}. The skills are: {there_is}.")
        return ToolResult(await asyncio.to_thread(found.full_text))
