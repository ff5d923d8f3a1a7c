"""/recall: show a whole message of this session, even if it is not in the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.message_lines import piece_lines, piece_text, speaker_of
from rolling_chat.tools.memory import index_named
from rolling_chat.tools.memory_search import search_branch

if TYPE_CHECKING:
    from rolling_chat.messages import Message

_MAX_FOUND = 20


async def _run(context: CommandContext, argument: str) -> None:
    branch = tuple(context.chat.session.messages)
    if not branch:
        context.say("Nothing was said in this session yet.")
        return
    if not argument:
        context.say(f"/recall takes an id (r1 to r{len(branch)}, as /context shows them) or words.")
        return
    index = index_named(argument)
    if index is None:
        index = await _pick(context, branch, argument)
    if index is None:
        return
    if not 1 <= index <= len(branch):
        context.say(f"There is no r{index}: this session has r1 to r{len(branch)}.", warning=True)
        return
    message = branch[index - 1]
    context.show_text(f"r{index} · {speaker_of(message)}", piece_text(message))


async def _pick(context: CommandContext, branch: Sequence[Message], words: str) -> int | None:
    """Let the user choose one of the messages that contain `words`."""
    everywhere = range(1, len(branch) + 1)
    found = await asyncio.to_thread(search_branch, branch, words, everywhere, _MAX_FOUND)
    if not found:
        context.say(f"Nothing in this session holds {words!r}.")
        return None
    choices = [
        Choice(
            str(one.index),
            f"r{one.index} · {speaker_of(branch[one.index - 1])}",
            piece_lines(branch[one.index - 1])[one.line],
        )
        for one in found
    ]
    chosen = await context.pick(f"Messages with {words}", choices)
    return int(chosen) if chosen else None


RECALL = Command(
    "recall",
    "[id|words]",
    "Open a whole message, even one that was dropped from the prompt",
    _run,
    while_busy=True,
)
