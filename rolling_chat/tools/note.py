"""note: keeps a note of the model's in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.notes import NOTE_TOOL, Note, normalize_note, parse_key
from rolling_chat.text import one_line
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text

_MAX_LISTED = 40  # characters of a note in a list


@dataclass(frozen=True, slots=True)
class NoteTool:
    """The tool `note(text, replaces)`; the call itself contains the note (see `rolling_chat.notes`)."""

    name: str = NOTE_TOOL
    needs_permission: bool = False
    only_reads: bool = False  # a note may replace one of an earlier call

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Keep a short note in your prompt. `replaces`: the id of a note that is out of date.",
            {"text": {"type": "string"}, "replaces": {"type": "string"}},
            required=("text",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the note."""
        text = arguments.get("text")
        return f"{self.name} {one_line(text)}".rstrip() if isinstance(text, str) else self.name

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Accept the note if all notes together fit; the call itself contains it."""
        text = normalize_note(read_text(arguments, "text"))
        if not text:
            raise ToolError("The argument 'text' is blank: give the note as text.")
        pad = context.notes
        if pad is None:
            raise ToolError("There is no conversation to keep a note in here.")
        notes = list(pad.notes)
        replaced = _replaced(read_text(arguments, "replaces", default=""), notes)
        notes = [note for note in notes if note is not replaced]
        note = Note(pad.next_key, text)
        size, room = pad.count([*notes, note]), pad.max_tokens
        if size > room:
            raise ToolError(_no_room(pad.count([note]), room, notes))
        line = f"[noted as {note.key.name}; your notes take {size} of {room} tokens]"
        return ToolResult(line, shown=text)


def _replaced(name: str, notes: Sequence[Note]) -> Note | None:
    """Return the note of this name; None for no name. Raises ToolError if it cannot be replaced."""
    if not name.strip():
        return None
    key = parse_key(name)
    found = next((note for note in notes if note.key == key), None)
    if found is None:
        raise ToolError(f"There is no note {one_line(name, 20)!r}. {_listed(notes)}")
    if found.by_user:
        raise ToolError(f"The user changed {found.key.name}; only the user may replace it.")
    return found


def _no_room(size: int, room: int, notes: Sequence[Note]) -> str:
    if not notes:
        return f"Not noted: it takes {size} tokens, and all notes together {room} at most. Make it shorter."
    return (
        f"Not noted: all notes together take at most {room} tokens. Make it shorter, or give in 'replaces' "
        f"the id of a note that is no longer needed. {_listed(notes)}"
    )


def _listed(notes: Sequence[Note]) -> str:
    if not notes:
        return "There are no notes yet."
    listed = (f"{note.key.name} {one_line(note.text, _MAX_LISTED)!r}" for note in notes)
    return f"Your notes: {'; '.join(listed)}."
