"""The user's pins and exclusions, by message id, and their effect on a branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat.context import Pins
from rolling_chat.context.pins import resolve_pins
from rolling_chat.messages import Message
from rolling_chat.notes import NO_EDITS, NoteEdits, NoteKey

_SYSTEM = Message("system", "")


@dataclass(frozen=True, slots=True)
class PinnedIds:
    """The pinned and the excluded message ids of a session, on all branches.

    `notes` has the user's edits of the model's notes, by `note_id`; the text of a removed one is empty.
    """

    pinned: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.pinned or self.excluded or self.notes)

    def on(self, branch: Sequence[Message], before: int = 0) -> Pins:
        """Return the pins as indices in `branch`, counted from 1, without messages of other branches.

        `before` is the number of messages that precede those in `branch`.
        """
        if not self:
            return Pins()
        return Pins(
            _indexes(branch, self.pinned, before),
            _indexes(branch, self.excluded, before),
            self._notes_on(branch, before),
        )

    def _notes_on(self, branch: Sequence[Message], before: int) -> NoteEdits:
        if not self.notes:
            return NO_EDITS
        indexes = {message.id: index for index, message in enumerate(branch, before + 1)}
        edits = ((*note_of_id(key), text) for key, text in self.notes.items())
        found = {NoteKey(indexes[made], number): text for made, number, text in edits if made in indexes}
        return MappingProxyType(found)


class PinFinder:
    """Finds the pinned and excluded messages of a growing branch, checking each once. Thread-safe."""

    def __init__(self, ids: PinnedIds) -> None:
        self._ids = ids
        # the number of messages checked, the last of them, and the pins found
        self._found: tuple[int, Message | None, Pins] = (0, None, Pins())

    def on(self, branch: Sequence[Message]) -> Pins:
        """Return the pins as indices in `branch`, as `PinnedIds.on` does."""
        if not self._ids:
            return Pins()
        count, last, known = self._found
        if not 0 < count <= len(branch) or branch[count - 1] is not last:
            count, known = 0, Pins()
        new = self._ids.on(branch[count:], count)
        notes = {**known.notes, **new.notes}
        pins = Pins(known.pinned | new.pinned, known.excluded | new.excluded, notes)
        stored = len(branch) - (not branch[-1].id if branch else 0)  # a draft has no id and may change
        if stored > count:
            self._found = (stored, branch[stored - 1], pins)
        return pins


def note_id(message_id: str, number: int) -> str:
    """Return a note's key on every branch: the message that made it, and its number there."""
    return f"{message_id}/{number}"


def note_of_id(key: str) -> tuple[str, int]:
    """Return the message id and the number in a note's key."""
    message_id, _, number = key.rpartition("/")
    return message_id, int(number)


@dataclass(frozen=True, slots=True)
class PinScope:
    """The message ids on a branch that pins and exclusions affect.

    `pinned` are those that the user named, and `along` those that are kept with them. `excluded` are all that
    are hidden from the model, including results whose calls stay.
    """

    pinned: frozenset[str] = frozenset()
    along: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.pinned or self.along or self.excluded)


def placed(branch: Sequence[Message]) -> list[Message]:
    """Return the messages at the indices that `/context` and recall use, with a system message at 0."""
    return [_SYSTEM, *branch]


def pin_scope_of(branch: Sequence[Message], ids: PinnedIds) -> PinScope:
    """Return which messages of `branch` the pins and exclusions `ids` affect."""
    pins = ids.on(branch)
    if not pins:
        return PinScope()
    messages = placed(branch)
    resolved = resolve_pins(messages, pins)
    named = resolved.pinned & pins.pinned
    return PinScope(
        ids_at(messages, named),
        ids_at(messages, resolved.pinned - named),
        ids_at(messages, resolved.excluded | resolved.emptied),
    )


def ids_at(messages: Sequence[Message], indexes: Iterable[int]) -> frozenset[str]:
    """Return the ids of the messages at `indexes`."""
    return frozenset(messages[index].id for index in indexes)


def _indexes(branch: Sequence[Message], ids: Collection[str], before: int) -> frozenset[int]:
    return frozenset(index for index, message in enumerate(branch, before + 1) if message.id in ids)
