"""What the person pinned and excluded, and all that comes along with it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.turns import opens_turn, opens_with_system, role_of
from rolling_chat.message_shapes import sound_message
from rolling_chat.messages import JsonObject, Message

EXCLUDED_RESULT = "[result excluded by the user]"


@dataclass(frozen=True, slots=True)
class Pins:
    """Places in the messages given: `pinned` never leave, `excluded` are not sent."""

    pinned: Set[int] = frozenset()
    excluded: Set[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.pinned or self.excluded)


@dataclass(frozen=True, slots=True)
class Held:
    """What pins come to on one branch, by place.

    `kept` never leaves and is never shortened; `left_out` is not sent; `emptied` are results that are
    sent as the line that says who excluded them, be their iteration kept or not.
    """

    kept: Set[int] = frozenset()
    left_out: Set[int] = frozenset()
    emptied: Set[int] = frozenset()

    def before(self, end: int) -> Held:
        """What they come to among the messages before place `end`."""
        return Held(
            frozenset(place for place in self.kept if place < end),
            frozenset(place for place in self.left_out if place < end),
            frozenset(place for place in self.emptied if place < end),
        )


NOTHING = Held()


def hold(messages: Sequence[Message | JsonObject], pins: Pins) -> Held:
    """What `pins` come to in `messages`, the whole branch; looks only at the turns that they are in.

    A pinned request or answer brings its turn's request along, a pinned call or result its whole
    iteration too. An excluded call takes its iteration, an excluded request its turn; a request that is
    still to be answered and the system message cannot be excluded. What is excluded is not pinned.
    """
    if not pins:
        return NOTHING
    branch = _Branch(messages)
    emptied = {place for place in pins.excluded if branch.role(place) == "tool"}
    left_out = set[int]().union(*map(branch.goes_with, pins.excluded - emptied))
    kept = set[int]().union(*map(branch.comes_with, pins.pinned - pins.excluded))
    return Held(frozenset(kept - left_out), frozenset(left_out), frozenset(emptied - left_out))


def request_of(messages: Sequence[Message | JsonObject], place: int) -> int:
    """The place of the request that opened the turn of `place`; -1 where there is none."""
    return _Branch(messages).request_of(place)


def current_request(messages: Sequence[Message | JsonObject]) -> int:
    """The place of the request that is still to be answered; -1 where the last turn has its answer."""
    return _Branch(messages).current


class _Branch:
    """The turns and iterations around a place."""

    def __init__(self, messages: Sequence[Message | JsonObject]) -> None:
        self._messages = messages
        self.current = -1 if _is_answered(messages) else self.request_of(len(messages) - 1)

    def role(self, place: int) -> str:
        """The role of the message at a place; empty for the system message, and where there is none."""
        if not 0 <= place < len(self._messages) or (place == 0 and opens_with_system(self._messages)):
            return ""
        return role_of(self._messages[place])

    def comes_with(self, place: int) -> set[int]:
        """All that stays when the message at `place` is pinned."""
        if not self.role(place):
            return set()
        return {place, *self._iteration_of(place), self.request_of(place)} - {-1}

    def goes_with(self, place: int) -> set[int]:
        """All that is not sent when the message at `place`, which is no result, is excluded."""
        if not self.role(place) or place == self.current:
            return set()
        if opens_turn(self._messages, place):
            end = place + 1
            while end < len(self._messages) and not opens_turn(self._messages, end):
                end += 1
            return set(range(place, end))
        return {place, *self._iteration_of(place)}

    def request_of(self, place: int) -> int:
        """The place of the request that opened the turn of a place; -1 where there is none."""
        while place >= 0 and self.role(place) and not opens_turn(self._messages, place):
            place -= 1
        return place if self.role(place) else -1

    def _iteration_of(self, place: int) -> range:
        start = place
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
    given = last if isinstance(last, Message) else Message.from_dict(sound_message(last))
    return not given.tool_calls
