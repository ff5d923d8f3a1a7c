"""/skills: list the skills with their tokens in every request, and show the text of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.text import exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rolling_chat.extensions.skills import Skill

_NONE = (
    "There are no skills. A skill is a folder with a SKILL.md, in .agents/skills of this project, in "
    "~/.agents/skills, or in skills beside your config.toml."
)


async def _run(context: CommandContext, _argument: str) -> None:
    session = context.chat.session
    session.read_instructions()
    context.refresh_report()
    for line in session.extensions.faults:
        context.say(line, warning=True)
    skills = session.extensions.skills
    if not skills:
        context.say(_NONE)
        return
    sizes = dict(session.skill_sizes())
    total = figures.tokens(sum(sizes.values()))
    choices = [Choice(skill.name, skill.name, _note(skill, sizes)) for skill in skills]
    chosen = await context.pick(f"Skills: {total} tokens in every request; choose one to read", choices)
    skill = next((one for one in skills if one.name == chosen), None)
    if skill is not None:
        context.show_text(f"Skill {skill.name}", "\n".join([*_facts(skill), "", skill.text]))


def _note(skill: Skill, sizes: Mapping[str, int]) -> str:
    price = f"{figures.tokens(sizes[skill.name])} tokens" if skill.name in sizes else "not in requests"
    return f"{price} · {'yours' if skill.is_own else 'of this project'} · {skill.description}"


def _facts(skill: Skill) -> Iterator[str]:
    yield skill.description
    yield f"file: {exact(skill.source)}"
    for name, value in (
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        ("allowed-tools (no permission: your rules decide)", " ".join(skill.allowed_tools)),
        *((skill.metadata or {}).items()),
    ):
        if value:
            yield f"{name}: {value}"


SKILLS = Command("skills", "", "List the skills with their price, and read one", _run)
