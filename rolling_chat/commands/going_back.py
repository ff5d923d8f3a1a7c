"""Asking whether files go back with the conversation, for all commands that move to another message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from rolling_chat import figures
from rolling_chat.commands.base import Choice, CommandContext

if TYPE_CHECKING:
    from rolling_chat.agent import FileMove

Choosing: TypeAlias = Literal["both", "conversation", "files"]

_MAX_NAMED = 3  # files in the note of a choice
_COMMANDS = "what commands changed stays"


async def choose_files(context: CommandContext, title: str, move: FileMove) -> Choosing | None:
    """Ask what goes to the other message: conversation, files, or both; None if the user cancels.

    Asks nothing where no file would change.
    """
    if not move.changes:
        return "conversation"
    names = [change.path.name for change in move.changes]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    files = f"{', '.join(names[:_MAX_NAMED])}{more}"
    count = figures.plural(len(names), "file")
    choices = [
        Choice("both", "Both", f"the conversation and {count}: {files}"),
        Choice("conversation", "Conversation", "files stay as they are"),
        Choice("files", "Files", "the conversation stays as it is"),
    ]
    chosen = await context.pick(f"{title}: {_COMMANDS}", choices)
    return next((one for one in ("both", "conversation", "files") if one == chosen), None)


async def go_back(context: CommandContext, title: str, move: FileMove, go: Callable[[], object]) -> bool:
    """Move the conversation by `go`, its files, or both, as the user chooses.

    Shows the conversation anew, and returns whether it moved.
    """
    chosen = await choose_files(context, title, move)
    if chosen is None:
        return False
    if chosen != "files":
        go()
        context.reload()
    if chosen != "conversation":
        context.chat.session.move_files(move)
        context.say(f"{figures.plural(len(move.changes), 'file')} changed back: {_named(move)}.")
    for line in move.left:
        context.say(line, warning=True)
    return chosen != "files"


def _named(move: FileMove) -> str:
    return ", ".join(change.path.name for change in move.changes[:10])
