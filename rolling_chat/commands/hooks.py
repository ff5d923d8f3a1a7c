"""/hooks: list the hooks of this session, and why others are ignored."""

from __future__ import annotations

from rolling_chat.commands.base import Column, Command, CommandContext, Table
from rolling_chat.figures import plural
from rolling_chat.text import exact, one_line

_MAX_COMMAND = 200  # characters

_NONE = (
    "There are no hooks. Yours are in your settings ([[hooks.PreToolUse]]), those of a project in its "
    ".agents/hooks.json once that is trusted."
)


def _run(context: CommandContext, _argument: str) -> None:
    hooks = context.chat.session.hooks
    rows = tuple(
        (event, exact(hook.matcher), one_line(exact(hook.command), _MAX_COMMAND), f"{hook.timeout} s", whose)
        for event, listed in hooks.by_event.items()
        for hook in listed
        for whose in ("yours" if hook.is_own else "this project's",)
    )
    if not rows and not hooks.faults:
        context.say(_NONE)
        return
    columns = ("event", "matcher", "command", "ends after", "whose")
    lead = [f"{plural(len(rows), 'hook')}, in the order in which they run", *hooks.faults]
    context.show_tables("Hooks", lead, [Table(tuple(map(Column, columns)), rows)])


HOOKS = Command("hooks", "", "List the commands that run by themselves on events", _run, while_busy=True)
