"""Shared by the commands that pin and exclude: the change, its line, and lists of messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Choice, CommandContext
from rolling_chat.commands.context import preview
from rolling_chat.message_lines import speaker_of

if TYPE_CHECKING:
    from rolling_chat.agent import PinEntry, PinPrice

_MAX_OFFERED = 500
USAGE = "[id|last|turn]"

_DONE = {
    PinChange.PIN: "Pinned",
    PinChange.UNPIN: "Unpinned",
    PinChange.EXCLUDE: "Excluded",
    PinChange.INCLUDE: "Included again",
}
_TITLE = {
    PinChange.UNPIN: "Unpin",
    PinChange.INCLUDE: "Send again",
}
_EFFECTS = {
    PinChange.PIN: "always in the prompt",
    PinChange.UNPIN: "free to leave the prompt",
    PinChange.EXCLUDE: "no longer sent",
    PinChange.INCLUDE: "sent again",
}


def price_line(price: PinPrice) -> str:
    """Return the cost of a change: `r17 with its request and call: 1,240 tokens, always in the prompt`."""
    along = f" with {price.along}" if price.along else ""
    tokens = figures.plural(price.tokens, "token")
    return f"{price.name}{along}: {tokens}, {_EFFECTS[price.change]}"


def done_line(price: PinPrice) -> str:
    """Return a line with the change made, its cost, and the command that undoes it."""
    difference = ""
    if price.before != price.after:
        difference = f"; the next request goes from ~{price.before:,} to ~{price.after:,} tokens"
    return f"{_DONE[price.change]} {price_line(price)}{difference}. {price.undo} takes it back."


def change_pins(context: CommandContext, change: PinChange, words: str) -> None:
    """Make a change of pins or exclusions, report its cost, and redraw."""
    price = context.chat.session.pins.make(change, words)
    context.refresh_report()
    context.say(done_line(price))


def entry_choices(entries: Iterable[PinEntry]) -> list[Choice]:
    """Return one entry per pinned or excluded message: its beginning and its tokens."""
    return [
        Choice(f"r{entry.index}", f"r{entry.index} · {preview(entry.message)}", f"{entry.tokens:,} tokens")
        for entry in entries
    ]


def message_choices(context: CommandContext) -> list[Choice]:
    """Return one entry per message that can be pinned or excluded, the newest first."""
    chat = context.chat
    excluded = chat.session.pins.scope.excluded
    sent = [
        (index, message)
        for index, message in enumerate(chat.session.messages, 1)
        if message.id not in excluded
    ]
    return [
        Choice(f"r{index}", f"r{index} · {preview(message)}", speaker_of(message))
        for index, message in sent[: -_MAX_OFFERED - 1 : -1]
    ]


def id_choices(context: CommandContext) -> list[Choice]:
    """Return the choices for the arguments in `USAGE`."""
    words = [Choice("last", "last", "the newest answer or result"), Choice("turn", "turn", "the newest turn")]
    return [*words, *message_choices(context)]


async def pick_entry(context: CommandContext, change: PinChange, entries: Iterable[PinEntry]) -> None:
    """Let the user choose a pinned or excluded message, and undo that."""
    choices = entry_choices(entries)
    if not choices:
        word = "pinned" if change is PinChange.UNPIN else "excluded"
        context.say(f"Nothing is {word} on this branch.")
        return
    chosen = await context.pick(_TITLE[change], choices)
    if chosen:
        change_pins(context, change, chosen)
