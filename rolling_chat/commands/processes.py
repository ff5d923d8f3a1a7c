"""/processes: list what commands left running, and end it."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.tools.leftover_processes import CHILDREN, Child, end_children

_ALL = "all"
_HOW = "Left running by commands (/processes NUMBER ends one, /processes all ends all):"


def _choices(_context: CommandContext) -> list[Choice]:
    left = CHILDREN.left_running()
    one = [Choice(str(child.pid), str(child.pid), child.command) for child in left]
    return [*one, Choice(_ALL, _ALL, "end all of them")] if left else []


async def _run(context: CommandContext, argument: str) -> None:
    left = CHILDREN.left_running()
    if not left:
        context.say("Commands left no processes running.")
    elif not argument:
        listed = "\n".join(str(child) for child in left)
        context.say(f"{_HOW}\n{listed}")
    elif chosen := _chosen(left, argument):
        await end_children(chosen)
        context.say(f"Ended {figures.plural(len(chosen), 'process', 'processes')}.")
    else:
        context.say(f"No command left a process {argument!r} running: /processes lists them.", warning=True)


def _chosen(left: tuple[Child, ...], argument: str) -> tuple[Child, ...]:
    if argument.lower() == _ALL:
        return left
    return tuple(child for child in left if str(child.pid) == argument)


PROCESSES = Command(
    "processes", "[number|all]", "List or end the processes that commands left running", _run,
    while_busy=True, arguments=first_word(_choices),
)  # fmt: skip
