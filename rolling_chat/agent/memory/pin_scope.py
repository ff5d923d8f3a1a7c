"""What the user pinned and excluded, by message id, and what that comes to on a branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rolling_chat.context import Pins
from rolling_chat.context.pins import resolve_pins
from rolling_chat.messages import Message

_SYSTEM = Message("system", "")


@dataclass(frozen=True, slots=True)
class PinnedIds:
    """The pinned and the excluded message ids of a session, on all branches."""

    pinned: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.pinned or self.excluded)

    def on(self, branch: Sequence[Message]) -> Pins:
        """Return the pins as indices in `branch`, counted from 1; messages of other branches are skipped."""
        return Pins(_places(branch, self.pinned), _places(branch, self.excluded)) if self else Pins()


@dataclass(frozen=True, slots=True)
class PinScope:
    """The message ids on a branch that pins and exclusions affect.

    `pinned` are those that the user named, `along` what stays for their sake, `excluded` all that
    is kept from the model, results whose call stays among them.
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
    held = resolve_pins(messages, pins)
    named = held.pinned & pins.pinned
    return PinScope(
        ids_at(messages, named),
        ids_at(messages, held.pinned - named),
        ids_at(messages, held.excluded | held.emptied),
    )


def ids_at(messages: Sequence[Message], indexes: Iterable[int]) -> frozenset[str]:
    """Return the ids of the messages at some indexes."""
    return frozenset(messages[index].id for index in indexes)


def _places(branch: Sequence[Message], ids: Collection[str]) -> frozenset[int]:
    return frozenset(index for index, message in enumerate(branch, 1) if message.id in ids)
