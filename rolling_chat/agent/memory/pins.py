"""Pin and exclude messages: find the messages that the user names, price the change, and make it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.memory.pin_scope import PinnedIds, PinScope, ids_at, placed
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import Pins, PromptReport
from rolling_chat.context.pins import current_request, resolve_pins
from rolling_chat.messages import Message
from rolling_chat.text import one_line
from rolling_chat.tools.memory import index_named


class PinChange(StrEnum):
    """A change of pins or exclusions, named by its command."""

    PIN = "pin"
    UNPIN = "unpin"
    EXCLUDE = "exclude"
    INCLUDE = "include"

    @property
    def inverse(self) -> PinChange:
        """The change that undoes this one."""
        return _INVERSE[self]


_INVERSE = {
    PinChange.PIN: PinChange.UNPIN,
    PinChange.UNPIN: PinChange.PIN,
    PinChange.EXCLUDE: PinChange.INCLUDE,
    PinChange.INCLUDE: PinChange.EXCLUDE,
}


@dataclass(frozen=True, slots=True)
class PinPrice:
    """The cost of a change of pins or exclusions.

    `name` is the target (`r17`, `turn 3`), and `along` describes the messages affected with it, if any.
    `tokens` is the size of all these messages. `before` and `after` are the estimated tokens of the next
    request. `undo` is the command that undoes the change.
    """

    change: PinChange
    name: str
    along: str
    tokens: int
    before: int
    after: int
    undo: str


@dataclass(frozen=True, slots=True)
class PinEntry:
    """A pinned or excluded message: its index (from 1), and the tokens kept or dropped because of it."""

    index: int
    message: Message
    along: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PinList:
    """All pinned and excluded messages of the branch; `elsewhere` counts those on other branches.

    `kept` is the tokens that all pins keep in the prompt; a message kept by several is counted once.
    """

    pinned: tuple[PinEntry, ...]
    excluded: tuple[PinEntry, ...]
    elsewhere: int
    kept: int


class SessionPins:
    """Pins and exclusions of one session.

    Messages are named as in `/context` and recall (`r17`, several separated by spaces), as `last` (the newest
    answer or result), or as `turn` with a number (without one, the newest whole turn). While a turn runs, a
    change affects its next request. Methods raise ChatError if they fail.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    def scope(self) -> PinScope:
        """The message ids on the branch that are pinned, kept with a pin, or excluded."""
        return self._state.planner.plan_state.pin_scope(self._state.conversation.messages)

    def price(self, change: PinChange, words: str) -> PinPrice:
        """Return the cost of a change without making it."""
        return self._weigh(change, words)[0]

    def make(self, change: PinChange, words: str) -> PinPrice:
        """Make a change; return its cost."""
        if self._state.is_followed:
            self._state.make_ours()
        price, ids = self._weigh(change, words)
        self._state.keep_pins(ids)
        return price

    def listed(self) -> PinList:
        """Return the pinned and the excluded messages, oldest first, with their sizes."""
        messages, ids = self._messages, self._state.planner.plan_state.pins
        pins, rows = ids.on(messages[1:]), self._report(ids).rows
        kept = resolve_pins(messages, pins).pinned
        pinned, excluded = [], []
        for index in sorted(pins.pinned):
            kept_by_it = resolve_pins(messages, Pins(frozenset({index}))).pinned & kept
            tokens = sum(rows[one].tokens_after for one in kept_by_it)
            pinned.append(self._entry(PinChange.PIN, index, tokens))
        for index in sorted(pins.excluded):
            resolved = resolve_pins(messages, Pins(excluded=frozenset({index})))
            hidden = resolved.excluded | resolved.emptied
            tokens = sum(rows[one].tokens_before - rows[one].tokens_after for one in hidden)
            excluded.append(self._entry(PinChange.EXCLUDE, index, max(0, tokens)))
        elsewhere = len(ids.pinned) + len(ids.excluded) - len(pins.pinned) - len(pins.excluded)
        kept_tokens = sum(rows[index].tokens_after for index in kept)
        return PinList(tuple(pinned), tuple(excluded), elsewhere, kept_tokens)

    def _entry(self, change: PinChange, index: int, tokens: int) -> PinEntry:
        messages = self._messages
        return PinEntry(
            index, messages[index], _along(messages, Target(f"r{index}", (index,)), change), tokens
        )

    def _weigh(self, change: PinChange, words: str) -> tuple[PinPrice, PinnedIds]:
        """Return the cost of a change, and the pins after it."""
        messages, old = self._messages, self._state.planner.plan_state.pins
        target = named(messages, words, change)
        new = _changed(messages, change, target, old)
        before, after = self._report(old), self._report(new)
        if after.floor > max(after.window, before.floor):
            raise ChatError(
                f"Nothing was changed: with {target.name}, {after.floor:,} tokens could never leave the "
                f"prompt, and the window is {after.window:,}. /pin lists what is pinned."
            )
        was, now = (resolve_pins(messages, ids.on(messages[1:])) for ids in (old, new))
        match change:
            case PinChange.PIN:
                stays = resolve_pins(messages, Pins(frozenset(target.indexes))).pinned & now.pinned
                tokens = sum(after.rows[index].tokens_after for index in stays)
            case PinChange.UNPIN:
                tokens = sum(before.rows[index].tokens_after for index in was.pinned - now.pinned)
            case PinChange.EXCLUDE | PinChange.INCLUDE:
                touched = (was.excluded | was.emptied) ^ (now.excluded | now.emptied)
                saved = sum(before.rows[one].tokens_after - after.rows[one].tokens_after for one in touched)
                saved += before.inserted - after.inserted  # a gap may need a placeholder message
                # the placeholder of a short result may be longer than the result
                tokens = max(0, saved if change is PinChange.EXCLUDE else -saved)
        undo = f"/{change.inverse} {_undo_name(messages, change, target, old, new)}"
        along = _along(messages, target, change)
        price = PinPrice(change, target.name, along, tokens, before.token_count, after.token_count, undo)
        return price, new

    def _report(self, ids: PinnedIds) -> PromptReport:
        return self._state.planner.forecast.report(self._state.conversation.messages, pins=ids)

    @property
    def _messages(self) -> list[Message]:
        return placed(self._state.conversation.messages)


@dataclass(frozen=True, slots=True)
class Target:
    """The messages that the user named: what to call them, their indices and, for a turn, its length."""

    name: str
    indexes: tuple[int, ...]
    in_turn: int = 0


# In what follows, `messages` begin with the system message, so that r1 has index 1.


def named(messages: Sequence[Message], words: str, change: PinChange) -> Target:
    """Return the messages that `words` name. Raises ChatError if there are none.

    To exclude a turn, its user message suffices, which also excludes messages that are added to the turn
    later. For any other change, a turn means all of its messages.
    """
    newest = len(messages) - 1
    if not newest:
        raise ChatError("Nothing was said on this branch yet.")
    # also accept the form that the prompt uses: [recall: r17]
    first, *rest = re.sub(r"\[recall:\s*(r\d+)(?: lines? [\d, -]+)?\]", r"\1", words.lower()).split() or [
        "last"
    ]
    if first == "last" and not rest:
        index = next((at for at in range(newest, 0, -1) if _is_reply(messages[at])), 0)
        if not index:
            raise ChatError("There is no answer and no result on this branch yet.")
        return Target(f"r{index}", (index,))
    if first == "turn" and len(rest) <= 1:
        return _turn(messages, rest[0] if rest else "", change)
    indexes = dict.fromkeys(index_named(word) for word in (first, *rest))
    known = tuple(index for index in indexes if index is not None)
    if len(known) < len(indexes):
        raise ChatError(
            f"/{change} takes r1 to r{newest} as /context shows them, last, or turn with a number, "
            f"not {one_line(words, 60)!r}."
        )
    missing = next((index for index in known if not 1 <= index <= newest), None)
    if missing is not None:
        raise ChatError(f"There is no r{missing}: this branch has r1 to r{newest}.")
    return Target(" ".join(f"r{index}" for index in known), known)


def _turn(messages: Sequence[Message], number: str, change: PinChange) -> Target:
    requests = [index for index, message in enumerate(messages) if message.role == "user"]
    whole = [turn for turn, index in enumerate(requests, 1) if index != current_request(messages)]
    turn = int(number) if number.isdecimal() and len(number) <= 9 else 0
    if not number and not whole:
        raise ChatError("There is no whole turn on this branch yet.")
    if not number:
        turn = whole[-1]
    if not 1 <= turn <= len(requests):
        raise ChatError(f"There is no turn {one_line(number, 20)!r}: this branch has {len(requests)}.")
    start = requests[turn - 1]
    end = requests[turn] if turn < len(requests) else len(messages)
    indexes = (start,) if change is PinChange.EXCLUDE else tuple(range(start, end))
    return Target(f"turn {turn}", indexes, end - start)


def _is_reply(message: Message) -> bool:
    return message.role == "tool" or (message.role == "assistant" and not message.tool_calls)


def _changed(messages: Sequence[Message], change: PinChange, target: Target, ids: PinnedIds) -> PinnedIds:
    """Return the pins after a change. Raises ChatError if the change makes no sense."""
    name, wanted = target.name, frozenset(target.indexes)
    pins = ids.on(messages[1:])
    resolved = resolve_pins(messages, pins)
    hidden = resolved.excluded | resolved.emptied
    match change:
        case PinChange.PIN:
            free = wanted - hidden
            if not free:
                raise ChatError(f"{name} is excluded; /include {name} comes first.")
            if free <= pins.pinned:
                raise ChatError(f"{name} is pinned already.")
            return replace(ids, pinned=ids.pinned | ids_at(messages, free))
        case PinChange.UNPIN:
            if not wanted & pins.pinned:
                raise ChatError(_why_not(messages, change, target, pins))
            return replace(ids, pinned=ids.pinned - ids_at(messages, wanted))
        case PinChange.EXCLUDE:
            if current_request(messages) in wanted:
                raise ChatError(
                    f"{name} is still to be answered and cannot be excluded; /undo takes it back."
                )
            if wanted <= hidden:
                raise ChatError(f"{name} is excluded already.")
            return replace(ids, excluded=ids.excluded | ids_at(messages, wanted))
        case PinChange.INCLUDE:
            if not wanted & pins.excluded:
                raise ChatError(_why_not(messages, change, target, pins))
            return replace(ids, excluded=ids.excluded - ids_at(messages, wanted))


def _why_not(messages: Sequence[Message], change: PinChange, target: Target, pins: Pins) -> str:
    """Return why there is no such pin or exclusion to undo."""
    is_pin = change is PinChange.UNPIN
    word = "pinned" if is_pin else "excluded"
    for index in sorted(pins.pinned if is_pin else pins.excluded):
        one = frozenset({index})
        resolved = resolve_pins(messages, Pins(one) if is_pin else Pins(excluded=one))
        if (resolved.pinned | resolved.excluded) & set(target.indexes):
            return f"{target.name} is {word} along with r{index}: /{change} r{index} takes that back."
    return f"{target.name} is not {word}; /pin lists what is."


def _undo_name(
    messages: Sequence[Message], change: PinChange, target: Target, old: PinnedIds, new: PinnedIds
) -> str:
    """Return the argument for the inverse command that restores the pins as they were."""
    back = named(messages, target.name, change.inverse)
    if _changed(messages, change.inverse, back, new) == old:
        return target.name
    was, now = old.on(messages[1:]), new.on(messages[1:])
    return " ".join(
        f"r{index}" for index in sorted((was.pinned ^ now.pinned) | (was.excluded ^ now.excluded))
    )


def _along(messages: Sequence[Message], target: Target, change: PinChange) -> str:
    """Describe the messages pinned or excluded along with a target, such as `its request and call`."""
    if target.in_turn:
        return _counted(target.in_turn, "its message", "its {} messages")
    if len(target.indexes) > 1:
        return ""
    (index,) = target.indexes
    pins = Pins(frozenset({index})) if change is PinChange.PIN else Pins(excluded=frozenset({index}))
    resolved = resolve_pins(messages, pins)
    others = [messages[one] for one in sorted((resolved.pinned | resolved.excluded) - {index})]
    if messages[index].role == "user":
        return _counted(len(others), "the message after it", "the {} messages after it")
    parts = ["request"] * any(other.role == "user" for other in others)
    parts += ["call"] * any(other.role == "assistant" for other in others)
    results = sum(other.role == "tool" for other in others)
    if messages[index].role == "tool":
        parts.append(_counted(results, "other result", "{} other results"))
    else:
        parts.append(_counted(results, "result", "{} results"))
    shown = [part for part in parts if part]
    return "its " + " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def _counted(count: int, one: str, many: str) -> str:
    return many.format(count) if count > 1 else one if count else ""
