"""Resolve pinned and excluded messages to all the messages that this affects."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from rolling_chat.context.turns import opens_turn, opens_with_system, role_of
from rolling_chat.message_validation import normalize_message
from rolling_chat.messages import JsonObject, Message
from rolling_chat.notes import NO_EDITS, NoteEdits

EXCLUDED_RESULT = "[result excluded by the user]"


@dataclass(frozen=True, slots=True)
class Pins:
    """Messages pinned or excluded by the user, by index: the former are never omitted, the latter never sent.

    `notes` are the user's edits of the model's notes, by the index of the call.
    """

    pinned: Set[int] = frozenset()
    excluded: Set[int] = frozenset()
    notes: NoteEdits = field(default_factory=lambda: NO_EDITS)

    def __bool__(self) -> bool:
        return bool(self.pinned or self.excluded or self.notes)


@dataclass(frozen=True, slots=True)
class PinEffects:
    """The messages of one conversation that pins affect, by index.

    `pinned` messages are never omitted or shortened, `excluded` ones are not sent. `emptied` are results that
    are replaced by a line saying that the user excluded them, whether or not their iteration is kept.
    """

    pinned: Set[int] = frozenset()
    excluded: Set[int] = frozenset()
    emptied: Set[int] = frozenset()

    def before(self, end: int) -> PinEffects:
        """Return the effects on the messages before index `end`."""
        return PinEffects(
            frozenset(index for index in self.pinned if index < end),
            frozenset(index for index in self.excluded if index < end),
            frozenset(index for index in self.emptied if index < end),
        )


NO_PINS = Pins()
NO_EFFECTS = PinEffects()


def resolve_pins(messages: Sequence[Message | JsonObject], pins: Pins) -> PinEffects:
    """Resolve `pins` against the whole branch; read only the turns that contain them.

    A pinned request or answer also pins its turn's request; a pinned call or result also pins its whole
    iteration. An excluded call excludes its iteration, an excluded request its turn. An unanswered request
    and the system message cannot be excluded. Exclusion takes precedence over pinning.
    """
    if not pins:
        return NO_EFFECTS
    branch = _Branch(messages)
    emptied = {index for index in pins.excluded if branch.role(index) == "tool"}
    excluded = set[int]().union(*map(branch.excluded_with, pins.excluded - emptied))
    pinned = set[int]().union(*map(branch.pinned_with, pins.pinned - pins.excluded))
    return PinEffects(frozenset(pinned - excluded), frozenset(excluded), frozenset(emptied - excluded))


def request_of(messages: Sequence[Message | JsonObject], index: int) -> int:
    """Return the index of the request that opened the turn of `index`; -1 if there is none."""
    return _Branch(messages).request_of(index)


def current_request(messages: Sequence[Message | JsonObject]) -> int:
    """Return the index of the unanswered request; -1 if the last turn is complete."""
    return _Branch(messages).current


class _Branch:
    """A branch, queried for the turn and the iteration around an index."""

    def __init__(self, messages: Sequence[Message | JsonObject]) -> None:
        self._messages = messages
        self.current = -1 if _is_answered(messages) else self.request_of(len(messages) - 1)

    def role(self, index: int) -> str:
        """Return the role of the message at an index; empty for the system message or an invalid index."""
        if not 0 <= index < len(self._messages) or (index == 0 and opens_with_system(self._messages)):
            return ""
        return role_of(self._messages[index])

    def pinned_with(self, index: int) -> set[int]:
        """Return the indexes that are kept when the message at `index` is pinned."""
        if not self.role(index):
            return set()
        return {index, *self._iteration_of(index), self.request_of(index)} - {-1}

    def excluded_with(self, index: int) -> set[int]:
        """Return the indexes that are not sent when the message at `index`, not a result, is excluded."""
        if not self.role(index) or index == self.current:
            return set()
        if opens_turn(self._messages, index):
            end = index + 1
            while end < len(self._messages) and not opens_turn(self._messages, end):
                end += 1
            return set(range(index, end))
        return {index, *self._iteration_of(index)}

    def request_of(self, index: int) -> int:
        """Return the index of the request that opened the turn of a message; -1 if there is none."""
        while index >= 0 and self.role(index) and not opens_turn(self._messages, index):
            index -= 1
        return index if self.role(index) else -1

    def _iteration_of(self, index: int) -> range:
        start = index
        while start > 0 and role_of(self._messages[start]) == "tool":
            start -= 1
        end = start + 1
        while end < len(self._messages) and role_of(self._messages[end]) == "tool":
            end += 1
        return (
            range(start, end)
            if end > start + 1 and role_of(self._messages[start]) == "assistant"
            else range(0)
        )


def _is_answered(messages: Sequence[Message | JsonObject]) -> bool:
    last = messages[-1] if messages else None
    if last is None or role_of(last) != "assistant":
        return False
    given = last if isinstance(last, Message) else Message.from_dict(normalize_message(last))
    return not given.tool_calls
