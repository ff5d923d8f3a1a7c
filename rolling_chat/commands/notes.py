"""/notes: read, change and remove the model's notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands.base import Arguments, Choice, Command, CommandContext
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.notes import Note

_SHOWN = 60  # characters of a note
_NONE = "There are no notes on this branch: with rolling context on, the model makes them with its tool note."
_WORDS = (Choice("edit", "edit", "change a note"), Choice("delete", "delete", "remove a note"))


def _listed(notes: Sequence[Note]) -> list[Choice]:
    return [
        Choice(
            note.key.name,
            f"{note.key.name} · {one_line(note.text, _SHOWN)}",
            "changed by you" if note.by_user else "",
        )
        for note in notes
    ]


def _choices(context: CommandContext, before: Sequence[str]) -> Sequence[Choice]:
    if not before:
        return _WORDS
    return _listed(context.chat.session.notes.notes) if len(before) == 1 else ()


async def _run(context: CommandContext, argument: str) -> None:
    word, _, name = argument.partition(" ")
    match word:
        case "" | "edit":
            await _edit(context, name.strip())
        case "delete":
            await _delete(context, name.strip())
        case _:
            context.say(
                f"Use /notes, /notes edit ID or /notes delete ID, not {one_line(argument, 40)!r}.",
                warning=True,
            )


async def _edit(context: CommandContext, name: str) -> None:
    notes = context.chat.session.notes
    name = name or await _pick(context, "edit")
    if not name:
        return
    note = notes.find(name)
    lead = "The model may not replace what you change. An empty text removes the note."
    text = await context.edit(f"Note {note.key.name}", lead, note.text)
    if text is None or text.strip() == note.text:
        return
    if not text.strip():
        await _delete(context, note.key.name)
        return
    changed = notes.change(note.key.name, text)
    context.refresh_report()
    context.say(f"{changed.key.name} is as you wrote it, from the next request on.")


async def _delete(context: CommandContext, name: str) -> None:
    name = name or await _pick(context, "delete")
    if not name:
        return
    note = context.chat.session.notes.remove(name)
    context.refresh_report()
    context.say(f"Removed {note.key.name}: {one_line(note.text, _SHOWN)}")


async def _pick(context: CommandContext, doing: str) -> str:
    """Let the user choose a note; return its name, or an empty text."""
    notes = context.chat.session.notes
    listed = _listed(notes.notes)
    if not listed:
        context.say(_NONE)
        return ""
    size = notes.count(notes.notes)
    title = f"Notes of the model: {size:,} of {notes.max_tokens:,} tokens; choose one to {doing}"
    return await context.pick(title, listed) or ""


NOTES = Command(
    "notes", "[edit|delete] [id]", "Read, change and remove what the model has noted", _run,
    while_busy=True, arguments=Arguments(_choices),
)  # fmt: skip
