"""/init: let the model draft an AGENTS.md for the working folder."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.settings.errors import SettingsError

_WHAT = """\
Look at the files first: what the project is, how it is laid out, how it is built, tested and checked, and \
which conventions its code follows. Write only what somebody who works here needs in every task and cannot \
see at once: the commands to build, test and lint, the layout in a few lines, the rules that hold. At most \
40 lines of Markdown, nothing that you did not see.\
"""
_WRITE = f"Write an AGENTS.md for this folder. {_WHAT}"
_TAKE_OVER = " Take over what is right in CLAUDE.md, which is not read any more once there is an AGENTS.md."
_IMPROVE = f"Improve the AGENTS.md of this folder. Read it first, and keep what is right. {_WHAT}"


async def _run(context: CommandContext, _argument: str) -> None:
    chat = context.chat
    path, policy = chat.folder_instructions, chat.session.permissions.policy
    is_new = not path.exists()
    if not is_new and any(file.path == path for file in chat.trust.unread()):
        context.say("There is an AGENTS.md that is not trusted: look at it with /trust first.", warning=True)
        return
    if policy in ("plan", "read-only"):
        context.say(f"In the mode {policy} no file is written: change it with /mode.", warning=True)
        return
    replaces = is_new and path.with_name("CLAUDE.md").exists()
    await context.send(f"{_WRITE if is_new else _IMPROVE}{_TAKE_OVER if replaces else ''}")
    if not is_new or not await _was_written(context):
        return
    try:
        chat.trust.trust_written(path)
    except SettingsError as error:
        context.say(str(error), warning=True)
        return
    chat.session.read_instructions()
    context.refresh_report()
    context.say("AGENTS.md is a part of every request from now on; /memory opens it.")


async def _was_written(context: CommandContext) -> bool:
    """Return whether this session wrote the file, with the user's approval, and it has not changed since."""
    path = str(context.chat.folder_instructions)
    files = await context.chat.session.files.states()
    return any(
        file.path == path and "written" in file.action and file.since.value == "unchanged" for file in files
    )


INIT = Command("init", "", "Let the model draft an AGENTS.md for this folder", _run)
