"""/pin: keep a turn, an iteration, an answer or a result in the prompt; without arguments, list the pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Column, Command, CommandContext, Table, first_word
from rolling_chat.commands.context import preview
from rolling_chat.commands.marks import Mark
from rolling_chat.commands.pinning import USAGE, change_pins, id_choices

if TYPE_CHECKING:
    from rolling_chat.agent import PinEntry


def _run(context: CommandContext, argument: str) -> None:
    if argument:
        change_pins(context, PinChange.PIN, argument)
    else:
        _list(context)


def _list(context: CommandContext) -> None:
    listed = context.chat.session.pins.listed()
    away = f" {listed.elsewhere:,} more on other branches." if listed.elsewhere else ""
    if not listed.pinned and not listed.excluded:
        context.say(
            f"Nothing is pinned or excluded on this branch.{away} /pin and /exclude take an id as /context "
            "shows it (r17), last, or turn."
        )
        return
    lines = [f"pinned messages and what comes along: {figures.plural(listed.kept, 'token')}, always sent"]
    if away:
        lines.append(away.strip())
    rows = [_row(entry, Mark.PINNED) for entry in listed.pinned]
    rows += [_row(entry, Mark.EXCLUDED) for entry in listed.excluded]
    names = ("is", "tokens", "with", "begins")
    columns = (Column("id", right=True), *(Column(name, right=name == "tokens") for name in names))
    context.show_tables("Pinned and excluded", lines, [Table(columns, tuple(rows))])


def _row(entry: PinEntry, word: str) -> tuple[str, ...]:
    return (f"r{entry.index}", word, f"{entry.tokens:,}", entry.along, preview(entry.message))


PIN = Command(
    "pin",
    USAGE,
    "Keep a turn, an answer or a result in the prompt; without an id, list the pins",
    _run,
    while_busy=True,
    arguments=first_word(id_choices),
)
