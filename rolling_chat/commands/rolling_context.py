"""/rolling-context: switch rolling context on or off, or say what it does now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands import figures
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.context.report import Fate, PromptReport

if TYPE_CHECKING:
    from rolling_chat.agent import Chat

_BINDS = 0.8  # the budget goes by upper bounds: what is nearer to the room there is, is all of it
_LEFT = (Fate.SUMMARISED, Fate.OMITTED, Fate.MASKED)


def describe(chat: Chat) -> str:
    """One line: on or off, the history cap beside the window, what is left out now."""
    report = chat.report()
    if not chat.rolling:
        return (
            "Rolling context is off: everything is sent, and what no longer fits is refused; "
            f"once it is on, {_cap(report)}."
        )
    return f"Rolling context is on: {_cap(report)}; {_left(report)}."


def _cap(report: PromptReport) -> str:
    history, window = report.history_budget, report.window
    if not window:
        return f"history may take {figures.tokens(history)} tokens"
    share = figures.percent(100 * history / window)
    size = f"{figures.tokens(history)} of {figures.window(window)} tokens"
    line = f"history may take {size}, {share} of the window"
    whole = window - report.reserve - report.margin - report.system - report.tools
    if history < _BINDS * whole:
        line += ", max_history_tokens = 0 gives it the whole window"
    return line


def _left(report: PromptReport) -> str:
    gone = report.count(*_LEFT)
    if not gone:
        return "nothing is left out now"
    verb = "is" if gone == 1 else "are"
    return f"{figures.plural(gone, 'message')} {verb} left out now, and kept on disk"


def _run(context: CommandContext, argument: str) -> None:
    wanted = argument.lower()
    match wanted:
        case "on" | "off" | "":
            context.chat.set_rolling(wanted == "on" or (not wanted and not context.chat.rolling))
            context.refresh_report()
        case "status":
            pass
        case _:
            context.say(f"/rolling-context takes on, off or status, not {argument!r}.", warning=True)
            return
    context.say(describe(context.chat))


ROLLING_CONTEXT = Command(
    "rolling-context",
    "[on|off|status]",
    "Let old messages leave the prompt in a fixed order; alone it toggles",
    _run,
    while_busy=True,
)
