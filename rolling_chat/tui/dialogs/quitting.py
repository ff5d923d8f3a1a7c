"""The question, when quitting, about processes that commands left running. Imported only then."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Choice
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_processes import CHILDREN, end_children
from rolling_chat.tui.dialogs.pickers import Picker

_KEEP, _END = "keep", "end"
_NAMED = 3  # processes whose commands are named


def quit_question() -> Picker | None:
    """Return a picker that asks what to do with the processes left running; None if there are none.

    Its result is None if the user stays in the program.
    """
    left = (*map(str, BACKGROUND.running()), *map(str, CHILDREN.left_running()))
    if not left:
        return None
    named = ", ".join(left[:_NAMED]) + (", …" if len(left) > _NAMED else "")
    title = f"Commands left {figures.plural(len(left), 'process', 'processes')} running"
    choices = (
        Choice(_END, "end them and quit", named),
        Choice(_KEEP, "quit, and let them run"),
    )
    return Picker(title, choices)


async def apply_answer(answer: str) -> None:
    """End the processes left running, if the user chose that."""
    if answer == _END:
        await end_leftovers()


async def end_leftovers() -> None:
    """End the commands in the background, and all processes that commands left running."""
    await BACKGROUND.end_all()
    await end_children(CHILDREN.left_running())
