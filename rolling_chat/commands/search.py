"""/search: search the messages of all sessions, and open a session at a hit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolling_chat.agent import SearchHit


def hit_choices(hits: Iterable[SearchHit], here: str, now: float) -> list[Choice]:
    """Return one entry per hit: its passage, session, turn and age. `here` is the open session's id."""
    choices = []
    for hit in hits:
        where = "this session" if hit.session_id == here else hit.title or "untitled"
        parts = [where, f"turn {hit.turn}" + ("" if hit.on_branch else ", a branch that was left")]
        if hit.created_at:
            parts.append(figures.age(now - hit.created_at))
        choices.append(Choice(f"{hit.session_id} {hit.message_id}", hit.snippet, " · ".join(parts)))
    return choices


async def _run(context: CommandContext, argument: str) -> None:
    if not argument:
        context.say(
            '/search takes the words to look for; "words in quotes" stand together, word* begins one.'
        )
        return
    chat = context.chat
    hits = await context.wait_for(lambda stop: chat.search(argument, stop), "searching")
    if hits is None:
        return
    choices = hit_choices(hits, chat.session.info.id, time.time())
    if not choices:
        context.say(f"Nothing that was said, in any session, holds {argument!r}.")
        return
    chosen = await context.pick(f"Found: {argument}", choices)
    if not chosen:
        return
    session_id, message_id = chosen.split()
    moved = session_id != chat.session.info.id
    if moved:
        await chat.enter(lambda: chat.next.saved(session_id))
    session = chat.session
    session.history.make_way()
    if await chat.apart(lambda: session.history.go_to(message_id)):
        context.reload()
        context.say("This is a branch that had been left; /redo returns to the other.")
    elif moved:
        context.reload()
    context.show_message(message_id, argument)


SEARCH = Command("search", "WORDS", "Search the messages of all sessions, and open one; Esc cancels", _run)
