"""/run, or !: run a shell command; its output goes into the prompt box, or is only shown."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.text import one_line

_ONLY_ME = "!"
_USAGE = (
    "Type !COMMAND to run a command and send its output with your message, or !!COMMAND to see it yourself."
)


async def _run(context: CommandContext, argument: str) -> None:
    command = argument.removeprefix(_ONLY_ME).strip()
    if not command:
        context.say(_USAGE, warning=True)
        return
    doing = f"running {one_line(command, 60)}"
    output = await context.wait_for_task(context.chat.session.run_own(command), doing)
    if output is None:
        context.say(f"Ended: {one_line(command, 60)}")
    elif argument.startswith(_ONLY_ME):
        context.show_text(f"$ {one_line(command, 200)}", output)
    else:
        context.insert_output(f"I ran this command:\n$ {command}\n{output}\n")


RUN = Command(
    "run",
    "COMMAND",
    "Run a command and send its output: !COMMAND; !!COMMAND only shows it to you",
    _run,
    while_busy=True,
)
