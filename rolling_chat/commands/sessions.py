"""/sessions: list the saved sessions, to open, rename, copy or delete one."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import ChatError
from rolling_chat.commands.base import Choice, Command, CommandContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rolling_chat.agent import Chat, SessionInfo

_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 40  # characters of the sparkline


def session_choices(sessions: Iterable[SessionInfo], now: float) -> list[Choice]:
    """Return one entry per session: title, id, folder, size and age. `now` is in seconds since the epoch."""
    return [
        Choice(
            info.id,
            info.title or "untitled",
            f"{info.short} · {Path(info.folder).name or info.folder} · "
            f"{figures.plural(info.messages, 'message')} · {figures.age(now - info.updated_at)}",
        )
        for info in sessions
    ]


def sparkline(sizes: Sequence[int], width: int = _SPARKS) -> str:
    """Return positive figures as at most `width` bars, each for the largest figure of its share."""
    if not sizes:
        return ""
    count = min(width, len(sizes))
    parts = [max(sizes[at * len(sizes) // count : (at + 1) * len(sizes) // count]) for at in range(count)]
    highest = max(*parts, 1)
    return "".join(_BARS[max(0, part) * (len(_BARS) - 1) // highest] for part in parts)


class Shelf:
    """The saved sessions that match a text, for the list of sessions."""

    def __init__(self, chat: Chat, argument: str = "") -> None:
        self._chat = chat
        self._saved = chat.saved
        self._wanted = argument.lower()

    async def choices(self) -> list[Choice]:
        """Return an entry for each session."""
        choices = session_choices(await self._chat.apart(self._saved.all), time.time())
        return [choice for choice in choices if self._wanted in f"{choice.label} {choice.note}".lower()]

    def preview(self, session_id: str) -> list[str]:
        """Return lines with the model, the tokens and the last messages of a session."""
        try:
            found = self._saved.preview(session_id)
        except ChatError as error:
            return [str(error)]
        lines = [f"{found.info.model or 'no model'} · {found.info.folder}"]
        if sizes := found.prompt_tokens:
            lines.append(f"{sparkline(sizes)} {figures.tokens(sizes[-1])} tokens in the last request")
        if found.asked:
            lines.append(f"you: {found.asked}")
        if found.answered:
            lines.append(f"model: {found.answered}")
        return lines

    async def rename(self, session_id: str, title: str) -> str:
        """Give a session another title; return an error line, or an empty text."""
        session = self._chat.session
        is_open = session_id == session.info.id
        give = partial(session.rename, title) if is_open else partial(self._saved.rename, session_id, title)
        try:
            await self._chat.apart(give)
        except ChatError as error:
            return str(error)
        return ""

    async def fork(self, session_id: str) -> str:
        """Copy a session; return an error line, or an empty text."""
        try:
            await self._chat.apart(partial(self._saved.fork, session_id))
        except ChatError as error:
            return str(error)
        return ""


async def open_session(context: CommandContext, id_start: str) -> None:
    """Open the session whose id begins with `id_start`; report a change of model. Raises ChatError."""
    before = context.chat.session.model, context.chat.session.address
    await context.chat.enter(lambda: context.chat.next.saved(id_start))
    context.reload()
    if (context.chat.session.model, context.chat.session.address) != before:
        context.say(context.chat.session.model_line)


async def pick_session(context: CommandContext, argument: str = "") -> None:
    """Let the user look through the sessions that match `argument`; open the one that they choose."""
    shelf = Shelf(context.chat, argument)
    if not await shelf.choices():
        context.say("No saved session matches." if argument else "There are no saved sessions yet.")
        return
    browsed = await context.browse(shelf, current=context.chat.session.info.id)
    context.refresh_title()
    for session_id in browsed.deleted:
        try:
            await context.chat.apart(partial(context.chat.saved.delete, session_id))
        except ChatError as error:
            context.say(f"Not deleted: {error}", warning=True)
    if browsed.chosen:
        await open_session(context, browsed.chosen)


SESSIONS = Command("sessions", "[text]", "Open, rename, copy or delete a saved session", pick_session)
