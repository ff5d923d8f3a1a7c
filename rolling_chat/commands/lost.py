"""/lost: list what the messages dropped from the prompt mention and the summary does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.context import Fate
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rolling_chat.agent import LeftOutLine
    from rolling_chat.context.report import PromptReport

_MAX_NAMES = 3  # shown before a line
_MAX_CHARS = 240


async def _run(context: CommandContext, _argument: str) -> None:
    left_out, report = context.chat.session.left_out, context.chat.session.preview.report()
    lines = await left_out.lost(report)
    if not lines:
        context.say(_nothing(report))
        return
    line = await pick_line(context, "What was lost: choose a line to put it back", lines)
    if line is None:
        return
    if left_out.stands_for(line.index, report):
        left_out.put_back(line)
        context.refresh_report()
        context.say(
            f"The summary has the line of r{line.index} from the next request on; /compact undo goes back."
        )
        return
    context.show_message(line.message_id, line.names[0])
    context.say(f"r{line.index} is not in the summary; /pin r{line.index} keeps it in the prompt.")


async def pick_line(context: CommandContext, title: str, lines: Sequence[LeftOutLine]) -> LeftOutLine | None:
    """Let the user choose one of the lines that a summary left out."""
    choices = [
        Choice(str(at), f"{_names(line)} — {one_line(line.line, _MAX_CHARS)}", f"r{line.index} {line.role}")
        for at, line in enumerate(lines)
    ]
    chosen = await context.pick(title, choices)
    return lines[int(chosen)] if chosen is not None else None


def _names(line: LeftOutLine) -> str:
    return ", ".join(one_line(name, 40) for name in line.names[:_MAX_NAMES])


def _nothing(report: PromptReport) -> str:
    if report.count(Fate.SUMMARIZED, Fate.OMITTED):
        return "The summary mentions all names, numbers and files of the messages that left."
    return "Nothing was lost: no message has left the prompt."


LOST = Command(
    "lost",
    "",
    "List what dropped messages mention and the summary does not; put a line back",
    _run,
    while_busy=True,
)
