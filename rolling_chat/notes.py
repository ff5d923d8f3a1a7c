"""Notes of the model: what its calls of the tool `note` say, as values and as lines.

Notes are kept nowhere by themselves: the calls on a branch say what they are, so that they go back with the
conversation. What the user changed or removed of them comes from outside, by the call.
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
"""The most that all notes take in a prompt together; on small windows it is a sixteenth of the window."""

_MIN_NOTES_TOKENS = 64
_LONGEST = 4_000  # characters of one note: more than the tokens for all of them hold
_KEY = re.compile(r"\[?(?:recall:\s*)?r?(\d{1,9})(?:\.(\d{1,3}))?\]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class NoteKey:
    """Name a note: the index of the message that made it, and which of that message's notes it is, from 1."""

    index: int
    number: int = 1

    @property
    def name(self) -> str:
        """The key as the model and the user see it: `r17`, or `r17.2`."""
        return f"r{self.index}" if self.number == 1 else f"r{self.index}.{self.number}"


NoteEdits: TypeAlias = Mapping[NoteKey, str]
"""What the user made of notes: their new text, empty for one that the user removed."""

NO_EDITS: NoteEdits = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Note:
    """One note; `by_user` says that the user changed it, or removed it if it has no text."""

    key: NoteKey
    text: str
    by_user: bool = False

    @property
    def line(self) -> str:
        """The note as the prompt tells it."""
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
    """Return a note's text as it is kept: printable, without blank lines, later lines indented."""
    lines = (printable(line.strip(), _LONGEST) for line in normalize_text(text[:_LONGEST]).splitlines())
    return "\n  ".join(filter(None, lines))


def note_of_call(call: ToolCall) -> NoteCall | None:
    """Return the note that a call makes; None for a call of another tool, and for one that makes none."""
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

    Each message comes with its index. A call whose result says that it failed, or that has none yet, makes
    no note, and no call replaces one that the user changed. What the user removed has no text.
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
    """Return notes as the prompt tells them, one below the other."""
    return "\n".join(note.line for note in notes)


def without_oldest(notes: Sequence[Note]) -> Sequence[Note]:
    """Return notes without the oldest that the user did not change, or without the oldest of all."""
    oldest = next((note for note in notes if not note.by_user), notes[0])
    return [note for note in notes if note is not oldest]
