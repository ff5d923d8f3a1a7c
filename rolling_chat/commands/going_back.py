"""Move to another message, optionally with the files; shared by all commands that undo or redo."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from rolling_chat import figures
from rolling_chat.agent import ChatError
from rolling_chat.commands.base import Choice, CommandContext

if TYPE_CHECKING:
    from rolling_chat.agent import FileMove

Choosing: TypeAlias = Literal["both", "conversation", "files"]

_MAX_NAMED = 3  # files in the note of a choice, and lines about files that are not changed
_COMMANDS = "what commands changed stays"


async def go_back(context: CommandContext, title: str, head: str, go: Callable[[], object]) -> bool:
    """Move the conversation to `head` with `go`, undo the tools' file changes, or both, as the user chooses.

    Show the conversation again, and return whether it moved.
    """
    session = context.chat.session
    move = None
    if await context.chat.apart(lambda: session.files.has_kept):
        here = session.head
        move = await context.wait_for(lambda _: session.files.move(here, head), "comparing files")
        if move is None:
            return False
    chosen = await _choose(context, title, move)
    if chosen is None:
        return False
    lines: list[str] = []
    if move is not None and chosen != "conversation":
        lines = await _move_files(context, move)
        if not lines:
            return False
    if chosen != "files":
        session.history.make_way()
        await context.chat.apart(go)
        context.reload()
    for line in lines:
        context.say(line)
    return chosen != "files"


async def _choose(context: CommandContext, title: str, move: FileMove | None) -> Choosing | None:
    """Ask what to move, unless no file would change; return None if the user cancels."""
    if move is None or not move.changes:
        return "conversation"
    names = [change.path.name for change in move.changes]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    count = figures.plural(len(names), "file")
    left = f"; {figures.plural(len(move.left), 'other file')} left as is" if move.left else ""
    choices = [
        Choice("both", "Both", f"the conversation and {count}: {', '.join(names[:_MAX_NAMED])}{more}{left}"),
        Choice("conversation", "Conversation", "files stay as they are"),
        Choice("files", "Files", "the conversation stays as it is"),
    ]
    chosen = await context.pick(f"{title}: {_COMMANDS}", choices)
    return next((one for one in ("both", "conversation", "files") if one == chosen), None)


async def _move_files(context: CommandContext, move: FileMove) -> list[str]:
    """Change the files; return lines that report it, or none if nothing was changed."""
    session = context.chat.session
    session.gate.require_idle()
    try:
        await context.wait_for(lambda _: session.files.make(move), "changing files")
    except ChatError as error:
        context.say(f"Nothing was moved: {error}", warning=True)
        return []
    names = ", ".join(change.path.name for change in move.changes[:10])
    left = list(move.left[:_MAX_NAMED])
    if len(move.left) > _MAX_NAMED:
        left.append(f"{len(move.left) - _MAX_NAMED} more files are left as they are.")
    return [f"{figures.plural(len(move.changes), 'file')} changed back: {names}.", *left]
