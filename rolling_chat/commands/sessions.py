"""/sessions: the sessions that there are; choosing one opens it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolling_chat.agent import SessionInfo


def session_choices(sessions: Iterable[SessionInfo], now: float) -> list[Choice]:
    """Return one entry per session: its title; then id, folder, size and age. `now` in seconds."""
    return [
        Choice(
            info.id,
            info.title or "untitled",
            f"{info.id[:8]} · {Path(info.folder).name or info.folder} · "
            f"{figures.plural(info.messages, 'message')} · {figures.age(now - info.updated_at)}",
        )
        for info in sessions
    ]


def open_session(context: CommandContext, id_start: str) -> None:
    """Open the session whose id begins with `id_start`; report a change of model. Raises ChatError."""
    before = context.chat.session.model, context.chat.session.address
    context.chat.resume(id_start)
    context.reload()
    if (context.chat.session.model, context.chat.session.address) != before:
        context.say(context.chat.session.model_line)


async def pick_session(context: CommandContext, argument: str = "") -> None:
    """Let the user choose a session, of those that match `argument`, and open it."""
    choices = session_choices(context.chat.sessions(), time.time())
    if argument:
        wanted = argument.lower()
        choices = [choice for choice in choices if wanted in f"{choice.label} {choice.note}".lower()]
    if not choices:
        context.say("No session is like that." if argument else "There are no saved sessions yet.")
        return
    chosen = await context.pick("Sessions", choices, current=context.chat.session.info.id)
    if chosen:
        open_session(context, chosen)


SESSIONS = Command("sessions", "[text]", "List the saved sessions and open one", pick_session)
