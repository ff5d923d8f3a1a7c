"""Slash commands that users and projects add: command files, and skills by their names."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from rolling_chat.agent import ChatError
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rolling_chat.agent import Chat
    from rolling_chat.agent.turn.attaching import Insertion
    from rolling_chat.extensions.custom_commands import CustomCommand
    from rolling_chat.extensions.skills import Skill

_MAX_SUMMARY = 100  # characters


def added_commands(chat: Chat, taken: Collection[str]) -> tuple[Command, ...]:
    """Return the commands that users and projects add, then the skills, without names that are `taken`."""
    extensions = chat.session.extensions
    found: dict[str, Command] = {}
    for one in extensions.commands:
        if one.name not in taken:
            whose = "" if one.is_own else " (this project's)"
            run = partial(_run_command, command=one)
            summary = f"{one_line(one.description, _MAX_SUMMARY)}{whose}"
            found[one.name] = Command(one.name, one.hint, summary, run)
    for skill in extensions.skills:
        if skill.name not in taken and skill.name not in found:
            whose = "skill" if skill.is_own else "skill of this project"
            run = partial(_run_skill, skill=skill)
            summary = f"{one_line(skill.description, _MAX_SUMMARY)} ({whose})"
            found[skill.name] = Command(skill.name, "[task]", summary, run)
    return tuple(found.values())


def shadowed_lines(chat: Chat, taken: Collection[str]) -> list[str]:
    """Return lines about commands and skills with the names of built-in commands."""
    extensions = chat.session.extensions
    own = "is a command of Rolling Chat"
    lines = [
        f"The command {one.source} is left out: /{one.name} {own}."
        for one in extensions.commands
        if one.name in taken
    ]
    return lines + [
        f"/{skill.name} {own}: /skill {skill.name} uses the skill {skill.source}."
        for skill in extensions.skills
        if skill.name in taken
    ]


async def use_skill(context: CommandContext, skill: Skill, words: str) -> None:
    """Send a message that calls a skill."""
    inserted = await context.chat.session.extensions.insert_skill(skill)
    await context.send(f"/skill {skill.name} {words}".rstrip(), [inserted])


async def _run_skill(context: CommandContext, argument: str, *, skill: Skill) -> None:
    await use_skill(context, skill, argument)


async def _run_command(context: CommandContext, argument: str, *, command: CustomCommand) -> None:
    session = context.chat.session
    work = session.extensions.insert_command(command, argument)
    inserted = await context.wait_for_task(work, f"preparing /{command.name}")
    if inserted is None:
        context.say(f"Not sent: /{command.name} was canceled.")
        return
    line = f"/{command.name} {argument}".rstrip()
    if not command.model:
        await context.send(line, [inserted])
    elif not command.is_own:
        context.say(
            f"/{command.name} names a model, which a project does not choose: {session.model} answers."
        )
        await context.send(line, [inserted])
    else:
        await _send_to(context, command.model, line, [inserted])


async def _send_to(context: CommandContext, model: str, line: str, inserted: Sequence[Insertion]) -> None:
    """Send a message to another model, and return to the session's own after the turn."""
    session = context.chat.session
    before = session.chosen
    if model == before.model:
        await context.send(line, inserted)
        return
    context.say(session.set_model(model))
    context.refresh_report()
    try:
        await context.send(line, inserted)
    finally:
        if context.chat.session is session:
            with suppress(ChatError):
                context.say(session.set_model(before.model))
            context.refresh_report()
