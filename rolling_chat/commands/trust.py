"""/trust: use the folder's own instructions and settings, or stop using them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.figures import plural
from rolling_chat.settings.errors import SettingsError
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.settings.trust import ProjectFile

_LATER = "Instructions change with your next message, settings with the next start."


def _named(files: Sequence[ProjectFile]) -> str:
    return ", ".join(one_line(exact(file.name), 60) for file in files)


async def _run(context: CommandContext, _argument: str) -> None:
    trust = context.chat.trust
    unread, trusted = trust.unread(), trust.trusted()
    if not unread and not trusted:
        context.say("This folder has no instructions and no settings of its own.")
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
                context.say(f"Trusted: {_named(unread)}. {_LATER}")
            case "stop":
                trust.refuse(trusted)
                context.say(f"No longer used: {_named(trusted)}. {_LATER}")
            case _:
                return
    except SettingsError as error:
        context.say(str(error), warning=True)


TRUST = Command(
    "trust",
    "",
    "Trust this folder's own instructions and settings, or stop using them",
    _run,
)
