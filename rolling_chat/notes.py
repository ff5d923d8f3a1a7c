"""The model's notes, derived from its calls of the tool `note`.

Notes are not stored separately: they follow from the calls on a branch, so that undoing the conversation
undoes them. Changes and removals by the user are passed in as edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Ending, Message, ToolCall
from rolling_chat.text import normalize_text, printable

NOTE_TOOL = "note"
"""The name of the tool."""

MAX_NOTES_TOKENS = 500
"""The maximum size of all notes in a prompt together; on small windows it is a sixteenth of the window."""

_MIN_NOTES_TOKENS = 64
_LONGEST = 4_000  # characters of one note: more than fits the limit in tokens for all notes
_KEY = re.compile(r"\[?(?:recall:\s*)?r?(\d{1,9})(?:\.(\d{1,3}))?\]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class NoteKey:
    """The identity of a note: the index of its message, and its number in that message, from 1."""

    index: int
    number: int = 1

    @property
    def name(self) -> str:
        """The key as shown to the model and the user: `r17`, or `r17.2`."""
        return f"r{self.index}" if self.number == 1 else f"r{self.index}.{self.number}"


NoteEdits: TypeAlias = Mapping[NoteKey, str]
"""The user's edits of notes: the new text of each, empty for a removed note."""

NO_EDITS: NoteEdits = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Note:
    """One note; `by_user` says that the user changed it, or removed it if it has no text."""

    key: NoteKey
    text: str
    by_user: bool = False

    @property
    def line(self) -> str:
        """The note as it appears in the prompt."""
        if not self.text:
            return f"{self.key.name}: removed by the user"
        return f"{self.key.name}{' (changed by the user)' if self.by_user else ''}: {self.text}"


class NoteCall(NamedTuple):
    """A call that makes a note: its text, and the name of the note that it replaces, if any."""

    text: str
    replaces: NoteKey | None = None


def max_notes_tokens(window: int) -> int:
    """Return the maximum tokens of all notes in a window of `window` tokens."""
    return max(_MIN_NOTES_TOKENS, min(MAX_NOTES_TOKENS, window // 16))


def parse_key(text: str) -> NoteKey | None:
    """Parse the name of a note, as the model or the user writes it; None for anything else."""
    match = _KEY.fullmatch(text.strip())
    return NoteKey(int(match[1]), int(match[2] or 1)) if match else None


def normalize_note(text: str) -> str:
    """Return a note's text in its normal form: printable, without blank lines, later lines indented."""
    lines = (printable(line.strip(), _LONGEST) for line in normalize_text(text[:_LONGEST]).splitlines())
    return "\n  ".join(filter(None, lines))


def note_of_call(call: ToolCall) -> NoteCall | None:
    """Return the note that a call makes; None if the call is of another tool or invalid."""
    if call.name != NOTE_TOOL:
        return None
    try:
        arguments = read_json(call.arguments)
        text, replaces = arguments["text"], arguments.get("replaces")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    text = normalize_note(text) if isinstance(text, str) else ""
    return NoteCall(text, parse_key(str(replaces)) if replaces else None) if text else None


def notes_after(
    known: Iterable[Note], said: Iterable[tuple[int, Message]], edits: NoteEdits = NO_EDITS
) -> dict[NoteKey, Note]:
    """Return the notes after some messages of a branch, given those known before, oldest first.

    Each message comes with its index. A call that failed or has no result yet makes no note, and no call
    replaces a note that the user changed. A note that the user removed has no text.
    """
    notes = {note.key: note for note in known}
    waiting: dict[str, tuple[NoteKey, NoteCall]] = {}
    for index, message in said:
        if message.role == "tool":
            made = waiting.pop(message.tool_call_id or "", None)
            if made is not None and message.ending is Ending.COMPLETE:
                _apply(notes, *made, edits)
        else:
            waiting = dict(_calls(index, message)) if message.tool_calls else {}
    changed = {key: Note(key, text, by_user=True) for key, text in edits.items() if key in notes}
    return dict(sorted({**notes, **changed}.items()))


def _calls(index: int, message: Message) -> Iterator[tuple[str, tuple[NoteKey, NoteCall]]]:
    number = 0
    for call in message.tool_calls:
        made = note_of_call(call)
        if made is not None:
            number += 1
            yield call.id, (NoteKey(index, number), made)


def _apply(notes: dict[NoteKey, Note], key: NoteKey, made: NoteCall, edits: NoteEdits) -> None:
    if made.replaces is not None and made.replaces not in edits:
        notes.pop(made.replaces, None)
    notes[key] = Note(key, made.text)


def notes_on(messages: Sequence[Message], edits: NoteEdits, first_index: int = 1) -> list[Note]:
    """Return the notes on a branch, oldest first, without those that the user removed."""
    made = notes_after((), enumerate(messages, first_index), edits)
    return [note for note in made.values() if note.text]


def notes_text(notes: Iterable[Note]) -> str:
    """Return notes as they appear in the prompt, one below the other."""
    return "\n".join(note.line for note in notes)


def without_oldest(notes: Sequence[Note]) -> Sequence[Note]:
    """Return notes without the oldest that the user did not change, or else without the oldest of all."""
    oldest = next((note for note in notes if not note.by_user), notes[0])
    return [note for note in notes if note is not oldest]
