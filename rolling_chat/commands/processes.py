"""/processes: list background commands and processes left running, show their output, and end them."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Column, Command, CommandContext, Table, first_word
from rolling_chat.text import one_line
from rolling_chat.tools.background import BACKGROUND, BackgroundCommand
from rolling_chat.tools.decoding import decode
from rolling_chat.tools.leftover_processes import CHILDREN, Child, end_children

_NAME = "/processes"
_ALL = "all"
_END = "end"
_COLUMNS = (Column("id"), Column("command"), Column("state"))
_LEAD = [
    f"{_NAME} ID shows the output of a command in the background, {_NAME} end ID ends it.",
    f"A number is a process that a command left running: {_NAME} NUMBER ends it.",
    f"{_NAME} all ends everything.",
]


def _choices(_context: CommandContext) -> list[Choice]:
    commands = [Choice(one.id, one.id, f"output of {one_line(one.command, 60)}") for one in BACKGROUND.all()]
    ends = [
        Choice(f"{_END} {one.id}", f"{_END} {one.id}", one_line(one.command, 60))
        for one in BACKGROUND.running()
    ]
    left = [Choice(str(child.pid), str(child.pid), child.command) for child in CHILDREN.left_running()]
    running = [*ends, *left]
    return [*commands, *running, *([Choice(_ALL, _ALL, "end all of them")] if running else [])]


async def _run(context: CommandContext, argument: str) -> None:
    left = CHILDREN.left_running()
    word, _, rest = argument.partition(" ")
    if not argument:
        _list(context, left)
    elif word.lower() == _ALL:
        running = BACKGROUND.running()
        await BACKGROUND.end_all()
        await end_children(CHILDREN.left_running())
        context.say(f"Ended {figures.plural(len(running) + len(left), 'process', 'processes')}.")
    elif command := BACKGROUND.find(rest if word.lower() == _END else word):
        await (_end(context, command) if word.lower() == _END else _show(context, command))
    elif chosen := [child for child in left if str(child.pid) == (rest or word)]:
        await end_children(chosen)
        context.say("Ended 1 process.")
    else:
        context.say(f"No command left a process {argument!r} running: {_NAME} lists them.", warning=True)


def _list(context: CommandContext, left: tuple[Child, ...]) -> None:
    rows = [(one.id, one_line(one.command, 200), one.state) for one in BACKGROUND.all()]
    rows += [(str(child.pid), child.command, "left running") for child in left]
    if rows:
        context.show_tables("Processes", _LEAD, [Table(_COLUMNS, rows)])
    else:
        context.say("Commands left no processes running.")


async def _show(context: CommandContext, command: BackgroundCommand) -> None:
    head, tail = command.output.parts
    gap = f"\n[… {command.output.left_out:,} bytes left out …]\n" if command.output.left_out else ""
    text = f"{decode(head)}{gap}{decode(tail)}" if gap else decode(head + tail)
    title = f"{command.id} · {command.state} · $ {one_line(command.command, 200)}"
    context.show_text(title, text or "No output.")


async def _end(context: CommandContext, command: BackgroundCommand) -> None:
    if command.code is not None:
        context.say(f"{command} is over: {command.state}.")
        return
    await BACKGROUND.end(command)
    context.say(f"Ended {command}.")


PROCESSES = Command(
    "processes",
    "[id|end id|number|all]",
    "List what commands run in the background, show its output, or end it",
    _run,
    while_busy=True,
    arguments=first_word(_choices),
)
