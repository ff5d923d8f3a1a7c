"""/trust: trust the folder's own files (instructions, settings, commands and the like), or stop that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.figures import plural
from rolling_chat.settings.errors import SettingsError
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.settings.project_files import ProjectFile

_MAX_NAMED = 20


def _named(files: Sequence[ProjectFile]) -> str:
    names = [one_line(exact(file.name), 60) for file in files[:_MAX_NAMED]]
    more = [f"and {len(files) - _MAX_NAMED:,} more"] if len(files) > _MAX_NAMED else []
    return ", ".join([*names, *more])


def _when(files: Sequence[ProjectFile]) -> str:
    """Return when a change of trust takes effect."""
    live = "with your next message" if any(file.kind.is_live for file in files) else ""
    once = "with the next start" if any(not file.kind.is_live for file in files) else ""
    if live and once:
        once = "settings and MCP servers with the next start"
    return f"This changes {', '.join(filter(None, (live, once)))}."


async def _run(context: CommandContext, _argument: str) -> None:
    trust = context.chat.trust
    unread, trusted = trust.unread(), trust.trusted()
    if not unread and not trusted:
        context.say("This folder brings nothing along that would be used.")
        return
    choices = [Choice("show", "Show them", _named((*unread, *trusted)))]
    if unread:
        choices.append(Choice("trust", f"Trust {plural(len(unread), 'file')}", _named(unread)))
    if trusted:
        choices.append(Choice("stop", f"Stop using {plural(len(trusted), 'file')}", _named(trusted)))
    answer = await context.pick("Files of this folder that are used once you trust it", choices)
    try:
        match answer:
            case "show":
                context.show_text("What this folder brings along", trust.shown((*unread, *trusted)))
            case "trust":
                trust.trust(unread)
                context.say(f"Trusted: {_named(unread)}. {_when(unread)}")
            case "stop":
                trust.refuse(trusted)
                context.say(f"No longer used: {_named(trusted)}. {_when(trusted)}")
            case _:
                return
    except SettingsError as error:
        context.say(str(error), warning=True)


TRUST = Command(
    "trust",
    "",
    "Trust this folder's own instructions, settings, skills and hooks, or stop",
    _run,
)
