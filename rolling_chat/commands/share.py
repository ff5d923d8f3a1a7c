"""/share: let other users of a team read the session or write to it."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext

_ACCESS = {"read": False, "write": True, "none": None}


async def _run(context: CommandContext, argument: str) -> None:
    session = context.chat.session
    name, _, access = argument.partition(" ")
    if not name:
        shared = await context.chat.apart(session.shared_with)
        names = ", ".join(f"{one} ({'write' if may_write else 'read'})" for one, may_write in shared.items())
        line = f"Shared with {names}" if names else "Shared with nobody"
        context.say(f"{line}; /share NAME read or write invites, /share NAME none ends that.")
        return
    access = access.strip() or "read"
    if access not in _ACCESS:
        context.say(f"There is no access {access!r}; there are {', '.join(_ACCESS)}.", warning=True)
        return
    await context.chat.apart(lambda: session.share(name, may_write=_ACCESS[access]))
    may = "no longer sees this session" if access == "none" else f"may {access} this session now"
    context.say(f"{name} {may}.")


SHARE = Command("share", "[name [read|write|none]]", "Share the session in a team's database", _run)
