"""The state of a prompt during a trim: which items are still in it, and how to undo a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from rolling_chat.context.prompt_items import OLDER, Decisions, PromptItem, Sizes
from rolling_chat.context.report import Fate
from rolling_chat.context.surviving import (
    STAND_IN_REPLY,
    ends_with_invented_reply,
    is_filler,
    needs_reply,
    without_idle_fillers,
)

# The key of a placeholder reply; the keys of other invented items are far below.
_PLACEHOLDER = -1


@dataclass(frozen=True, slots=True)
class Change:
    """One item before and after a trim step, so that the step can be undone.

    None means that the item is absent, omitted or not yet added. `level` is the limit that the item had,
    `layer` the layer that omitted it."""

    turn: int
    key: int
    before: PromptItem | None
    after: PromptItem | None
    level: int | None = None
    layer: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """The size of the prompt in bound tokens, and of its history in estimated tokens and in messages."""

    bound: int
    history: int
    in_history: int


class WorkingPrompt:
    """The items that are still in the prompt, turn by turn; the current turn is last.

    Totals are updated incrementally, so that a step costs only as much as it changes.
    """

    def __init__(
        self,
        turns: Sequence[Sequence[PromptItem]],
        sizes: Sizes,
        decisions: Decisions,
        pinned: Set[int] = frozenset(),
    ) -> None:
        """`pinned` are indexes that are never omitted or shortened."""
        # by index, so that an item is found, replaced or removed without a search
        self._turns: list[dict[int, PromptItem | None]] = [
            {_key(item): item for item in turn} for turn in turns
        ]
        self.current = len(turns) - 1
        """The index of the current turn."""
        self._sizes = sizes
        self._before = decisions
        self._pinned = pinned | set(_invented_for(pinned, turns)) if pinned else pinned
        self._fillers = [[_key(item) for item in turn if is_filler(item)] for turn in turns]
        # the reply that the repair gave to an unanswered turn is reused for that turn
        self._replies = [turn[-1] if ends_with_invented_reply(turn) else None for turn in turns]
        self._masked = dict(decisions.masked)
        self._arguments = set(decisions.arguments)
        self._levels = dict(decisions.levels)
        self._omitted: dict[int, str] = {}
        self._reply = sizes.shape(STAND_IN_REPLY, decisions)
        self._changes: list[Change] = []
        self.totals = Totals(
            sum(item.bound for turn in turns for item in turn),
            sum(item.tokens for turn in turns[:-1] for item in turn),
            sum(map(len, turns[:-1])),
        )

    def __len__(self) -> int:
        return len(self._turns)

    def of(self, turn: int) -> list[PromptItem]:
        """Return the remaining items of a turn, in order."""
        return [item for item in self._turns[turn].values() if item is not None] if self._turns else []

    def contains(self, turn: int, index: int) -> bool:
        """Return whether the message at `index` is still in this turn."""
        return self._turns[turn].get(index) is not None

    @property
    def turns(self) -> list[list[PromptItem]]:
        """The turns with remaining items; the current turn is last, even if empty."""
        items = list(map(self.of, range(len(self))))
        return [turn for turn in items[:-1] if turn] + items[-1:]

    @property
    def decisions(self) -> Decisions:
        """The given and new decisions, without those on omitted messages."""
        omitted = self._before.omitted.add(self._omitted.items())
        return Decisions(
            omitted,
            MappingProxyType({index: why for index, why in self._masked.items() if index not in omitted}),
            frozenset(index for index in self._arguments if index not in omitted),
            MappingProxyType({index: cap for index, cap in self._levels.items() if index not in omitted}),
        )

    # -- steps

    def omit(self, turn: int, omitted_items: Iterable[PromptItem], layer: str) -> None:
        """Omit `omitted_items` from a turn; changed items are found by their index.

        Invented messages are dropped with their counterparts: a result with its call, a request or a reply
        with the whole turn.
        """
        keys = dict.fromkeys(map(_key, omitted_items))
        is_call_omitted = False
        for key in keys:
            item = self._turns[turn].get(key)
            if item is None or key == _PLACEHOLDER or is_filler(item):
                continue
            is_result = item.message.role == "tool"
            if not is_result:
                is_call_omitted = key not in self._pinned
            if key in self._pinned:
                continue
            if item.index < 0 and not (is_call_omitted if is_result else self._omits_whole(turn, keys)):
                continue
            self._turns[turn][key] = None
            self._record(Change(turn, key, item, None, layer=layer))
            if item.index >= 0:
                self._omitted[item.index] = layer
        self._drop_idle_fillers(turn)
        self._update_placeholder(turn)

    def _omits_whole(self, turn: int, keys: Collection[int]) -> bool:
        """Return whether omitting `keys` leaves no real message in the turn."""
        real = (item.index for item in self.of(turn) if item.index >= 0)
        return all(index in keys and index not in self._pinned for index in real)

    def mask(self, turn: int, item: PromptItem, reason: str = OLDER) -> None:
        """Mask a result; it stays unchanged if the mask would not be shorter."""
        if self._is_changeable(item) and item.index not in self._masked:
            self._masked[item.index] = reason
            level = self._levels.pop(item.index, None)
            self._reshape(turn, item.index, level)

    def shorten_arguments(self, turn: int, item: PromptItem) -> None:
        """Cut the long arguments of a call."""
        if not self._is_changeable(item):
            return
        # a call that was leveled while it was the newest loses its share
        level = self._levels.pop(item.index, None)
        if level is not None or item.index not in self._arguments:
            self._arguments.add(item.index)
            self._reshape(turn, item.index, level)

    def level(self, item: PromptItem, share: int) -> None:
        """Limit a result of the current turn, or each long value of a call, to `share` bound tokens."""
        if not self._is_changeable(item):
            return
        if item.message.tool_calls:
            self._arguments.add(item.index)
        self._levels[item.index] = share
        self._reshape(self.current, item.index)

    def unlevel(self, item: PromptItem) -> None:
        """Undo the leveling of a result or a call of the current turn."""
        if self._levels.pop(item.index, None) is not None:
            self._arguments.discard(item.index)
            self._reshape(self.current, item.index)

    def _is_changeable(self, item: PromptItem) -> bool:
        return item.index >= 0 and item.index not in self._pinned

    # -- undoing steps

    def take_changes(self) -> tuple[Change, ...]:
        """Return the changes since the last call."""
        done, self._changes = tuple(self._changes), []
        return done

    def totals_without(self, changes: Sequence[Change]) -> Totals:
        """Return the totals as if `changes` were undone."""
        totals = self.totals
        for change in changes:
            totals = self._updated_totals(totals, change.turn, change.after, change.before)
        return totals

    def restore(self, changes: Sequence[Change]) -> bool:
        """Undo a step unless its items have changed since; return whether it was undone."""
        if not all(map(self.is_unchanged_since, changes)):
            return False
        self.totals = self.totals_without(changes)
        for change in changes:
            self._turns[change.turn][change.key] = change.before
            if change.before is None:
                continue
            if change.after is None:
                self._omitted.pop(change.key, None)
                continue
            self._masked.pop(change.key, None)
            if change.level is not None:
                self._levels[change.key] = change.level
            else:
                self._arguments.discard(change.key)
        return True

    def redo(self, undone: Sequence[Change]) -> None:
        """Repeat a step that was undone, whatever its items have become since."""
        for change in undone:
            now, after = self._turns[change.turn].get(change.key), change.after
            self._turns[change.turn][change.key] = after
            self._record(Change(change.turn, change.key, now, after))
            if after is None and change.layer and change.key >= 0:
                self._omitted[change.key] = change.layer
            elif after is not None and after.fate is Fate.MASKED:
                self._levels.pop(change.key, None)
                self._masked[change.key] = after.reason

    def is_unchanged_since(self, change: Change) -> bool:
        """Return whether the item is unchanged since that step."""
        return self._turns[change.turn].get(change.key) is change.after

    def restore_part(self, turn: int, index: int, share: int) -> None:
        """Cut a restored item to `share` bound tokens."""
        self._levels[index] = share
        self._reshape(turn, index)

    def _drop_idle_fillers(self, turn: int) -> None:
        """Drop the fillers that no longer separate two answers."""
        if not self._fillers[turn]:
            return
        items = [item for item in self._turns[turn].values() if item is not None]
        needed = {id(item) for item in without_idle_fillers(items)}
        for key in self._fillers[turn]:
            item = self._turns[turn][key]
            if item is not None and id(item) not in needed:
                self._turns[turn][key] = None
                self._record(Change(turn, key, item, None))

    def _update_placeholder(self, turn: int) -> None:
        """Add a placeholder reply to a past turn whose own was omitted, or remove one no longer needed."""
        if turn == self.current:
            return
        placeholder, others = self._turns[turn].get(_PLACEHOLDER), self.of(turn)[::-1]
        others = [item for item in others[:2] if item is not placeholder]
        reply = self._replies[turn] or self._reply
        wanted = reply if others and needs_reply(others[0]) else None
        if placeholder is not wanted:
            self._turns[turn][_PLACEHOLDER] = wanted
            self._record(Change(turn, _PLACEHOLDER, placeholder, wanted))

    def _reshape(self, turn: int, index: int, level: int | None = None) -> None:
        old = self._turns[turn].get(index)
        if old is None:
            return
        working = Decisions(self._before.omitted, self._masked, self._arguments, self._levels)
        shaped = self._sizes.shape(old.normalized, working)
        self._turns[turn][index] = shaped
        self._record(Change(turn, index, old, shaped, level))

    def _record(self, change: Change) -> None:
        self._changes.append(change)
        self.totals = self._updated_totals(self.totals, change.turn, change.before, change.after)

    def _updated_totals(
        self, totals: Totals, turn: int, old: PromptItem | None, new: PromptItem | None
    ) -> Totals:
        is_past = turn != self.current
        count = (new is not None) - (old is not None)
        tokens = (new.tokens if new else 0) - (old.tokens if old else 0)
        return Totals(
            totals.bound + (new.bound if new else 0) - (old.bound if old else 0),
            totals.history + tokens * is_past,
            totals.in_history + count * is_past,
        )


def _invented_for(pinned: Set[int], turns: Sequence[Sequence[PromptItem]]) -> Iterator[int]:
    """Yield the keys of results that were invented for pinned calls."""
    for turn in turns:
        call = -1
        for item in turn:
            if item.message.role != "tool":
                call = item.index
            elif item.index < 0 and call in pinned:
                yield _key(item)


def _key(item: PromptItem) -> int:
    """Return the index of an item; for an invented one, a unique negative key."""
    return item.index if item.index >= 0 else -id(item)


def split_iterations(turn: Sequence[PromptItem]) -> list[list[PromptItem]]:
    """Split a turn into iterations, oldest first: each call with all of its results.

    User messages and answers without calls are in no iteration.
    """
    found: list[list[PromptItem]] = []
    inside = False
    for item in turn:
        if item.message.tool_calls:
            found.append([item])
            inside = True
        elif item.message.role == "tool" and inside:
            found[-1].append(item)
        else:
            inside = False
    return found


def maskable_results(turn: Sequence[PromptItem], keep_first: int, keep_last: int) -> list[PromptItem]:
    """Return the results of `turn` between its first `keep_first` and its last `keep_last`.

    Results of the newest iteration, which the model has not seen, are never included; the list is empty if
    the two windows contain all results.
    """
    results = [item for item in turn if item.message.role == "tool" and item.index >= 0]
    between = results[keep_first : max(keep_first, len(results) - keep_last)]
    iterations = split_iterations(turn)
    newest = {item.index for item in iterations[-1]} if iterations else set()
    return [item for item in between if item.index not in newest]
