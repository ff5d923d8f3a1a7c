"""/skill: use a skill by its name, even if a command has the same name."""

from __future__ import annotations

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.commands.custom import use_skill
from rolling_chat.text import one_line


def _choices(context: CommandContext) -> list[Choice]:
    return [Choice(one.name, one.name, one.description) for one in context.chat.session.extensions.skills]


async def _run(context: CommandContext, argument: str) -> None:
    name, _, words = argument.partition(" ")
    skills = context.chat.session.extensions.skills
    skill = next((one for one in skills if one.name == name.lower()), None)
    if skill is None:
        there_are = ", ".join(one.name for one in skills) or "none; the README says where they are found"
        said = f"There is no skill “{one_line(name, 60)}”; the skills are" if name else "The skills are"
        context.say(f"{said}: {there_are}.", warning=bool(name))
        return
    await use_skill(context, skill, words.strip())


SKILL = Command(
    "skill",
    "NAME [task]",
    "Use a skill for a task; /NAME does the same",
    _run,
    arguments=first_word(_choices),
)
