"""/rename: give the session a title."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, argument: str) -> None:
    chat = context.chat
    if not argument:
        made = "yours" if chat.session.info.title_given else "made from your first message"
        context.say(
            f"The title is {chat.session.info.title or 'not there yet'!r}, {made}; /rename TITLE changes it."
        )
        return
    await chat.apart(lambda: chat.session.rename(argument))
    context.refresh_title()
    context.say(f"The session is called {chat.session.info.title!r} now.")


RENAME = Command("rename", "[title]", "Give the session a title of your own", _run, while_busy=True)
