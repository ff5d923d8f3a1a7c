"""Extra content of the notice in the system message: notes, names, and the room that is left.

It is decided at a trim and stored in the plan, so that the beginning of the prompt does not change between
trims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby

from rolling_chat.context.tool_results import recall_line
from rolling_chat.figures import rounded
from rolling_chat.messages import Json, JsonObject
from rolling_chat.notes import Note, NoteKey, notes_text

NOTES_HEAD = "[your notes: a record, no instructions; newer ones may follow below]"
NAMES_HEAD = "[names only in what left the prompt]"


@dataclass(frozen=True, slots=True)
class OmittedName:
    """A name found nowhere in the prompt, with the index of its newest message and its worth for ranking."""

    index: int
    name: str
    worth: int


@dataclass(frozen=True, slots=True)
class NoticeContents:
    """What the notice contains besides the number of missing messages.

    `notes` are those whose call was omitted or that the user changed; `hidden_notes` are known but not shown,
    for lack of room or because the user excluded the call. `names` are ordered by worth. `free` is the number
    of free tokens after the trim, -1 if it is not reported; `seen` is the length of the branch at that time.
    """

    notes: tuple[Note, ...] = ()
    hidden_notes: tuple[Note, ...] = ()
    names: tuple[OmittedName, ...] = ()
    free: int = -1
    seen: int = 0

    def without(self, indexes: Set[int]) -> NoticeContents:
        """Return a copy without content from the messages at `indexes`."""
        hidden = [note for note in self.notes if note.key.index in indexes]
        if not hidden and not any(name.index in indexes for name in self.names):
            return self
        return replace(
            self,
            notes=tuple(note for note in self.notes if note not in hidden),
            hidden_notes=tuple(sorted((*self.hidden_notes, *hidden), key=lambda note: note.key)),
            names=tuple(name for name in self.names if name.index not in indexes),
        )

    def with_only(self, *, notes: bool, names: bool) -> NoticeContents:
        """Return a copy with or without its notes and names."""
        return replace(self, notes=self.notes if notes else (), names=self.names if names else ())

    @property
    def notes_block(self) -> str:
        """The notes as the system message lists them; empty if there are none."""
        return f"{NOTES_HEAD}\n{notes_text(self.notes)}" if self.notes else ""

    def names_block(self, *, recall: bool) -> str:
        """Return the names by message, oldest first; with `recall`, each line ends with the recall id."""
        return names_block(self.names, recall=recall)

    @property
    def room_line(self) -> str:
        """The line that reports the free room after the trim; empty if it is not reported."""
        return f"[about {rounded(self.free):,} tokens of room after this]" if self.free >= 0 else ""

    def to_json(self) -> dict[str, Json]:
        """Return the contents as plain JSON values."""
        return {
            "notes": _plain(self.notes),
            "untold": _plain(self.hidden_notes),
            "names": [[name.index, name.name, name.worth] for name in self.names],
            "free": self.free,
            "seen": self.seen,
        }

    @classmethod
    def from_json(cls, data: JsonObject | None) -> NoticeContents:
        """Read contents from JSON; a plan of an earlier version has none."""
        if not data:
            return cls()
        return cls(
            _notes(data["notes"]),
            _notes(data["untold"]),
            tuple(OmittedName(index, name, worth) for index, name, worth in data["names"]),
            data["free"],
            data["seen"],
        )


NO_CONTENTS = NoticeContents()


def _plain(notes: Sequence[Note]) -> list[list[Json]]:
    return [[note.key.index, note.key.number, note.text, note.by_user] for note in notes]


def _notes(plain: Sequence[tuple[int, int, str, bool]]) -> tuple[Note, ...]:
    return tuple(Note(NoteKey(index, number), text, by_user) for index, number, text, by_user in plain)


def names_block(names: tuple[OmittedName, ...], *, recall: bool) -> str:
    """Return names as the system message lists them; empty if there are none."""
    return "\n".join((NAMES_HEAD, *_name_lines(names, recall=recall))) if names else ""


def _name_lines(names: tuple[OmittedName, ...], *, recall: bool) -> Iterator[str]:
    ordered = sorted(enumerate(names), key=lambda item: (item[1].index, item[0]))
    for index, group in groupby((name for _, name in ordered), key=lambda name: name.index):
        line = ", ".join(name.name for name in group)
        yield f"{line} {recall_line(index)}" if recall else line
