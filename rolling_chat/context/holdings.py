"""What is still in the prompt while the ladder is walked, and how a step is taken back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from rolling_chat.context.pieces import Decisions, Piece, Sizes
from rolling_chat.context.turns import REPLY_LEFT, Entry, is_filler, without_idle_fillers
from rolling_chat.messages import Message

# The key of the reply that stands for one that left; those of other invented pieces are far below.
_BRIDGE = -1


@dataclass(frozen=True, slots=True)
class Change:
    """One piece before and after a step: None where it left, or was not there; `level` is what it was
    held to."""

    turn: int
    key: int
    before: Piece | None
    after: Piece | None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What is held: all of it in bound tokens, the history in estimated ones, and in messages."""

    bound: int
    history: int
    in_history: int


class Holdings:
    """The pieces that stay, turn by turn, the last of which is the current one.

    Totals are kept as pieces leave and change, so that a step costs what it touches.
    """

    def __init__(
        self,
        turns: Sequence[Sequence[Piece]],
        sizes: Sizes,
        decisions: Decisions,
        kept: Set[int] = frozenset(),
    ) -> None:
        """`kept` are places that never leave and are never shortened."""
        # by place, so that one piece is found, replaced or taken out without a look at the others
        self._turns: list[dict[int, Piece | None]] = [
            {_key(piece): piece for piece in turn} for turn in turns
        ]
        self._current = len(turns) - 1
        self._sizes = sizes
        self._before = decisions
        self._kept = kept | set(_invented_for(kept, turns)) if kept else kept
        self._fillers = [[_key(piece) for piece in turn if is_filler(piece)] for turn in turns]
        # a turn that never got a reply was given one: it stays that turn's
        self._replies = [
            turn[-1] if turn and turn[-1].index < 0 and is_answer(turn[-1]) else None for turn in turns
        ]
        self._masked = set(decisions.masked)
        self._arguments = set(decisions.arguments)
        self._levels = dict(decisions.levels)
        self._omitted: dict[int, str] = {}
        self._reply = sizes.shape(Entry(-1, Message("assistant", REPLY_LEFT)), decisions)
        self._changes: list[Change] = []
        self.totals = Totals(
            sum(piece.bound for turn in turns for piece in turn),
            sum(piece.tokens for turn in turns[:-1] for piece in turn),
            sum(map(len, turns[:-1])),
        )

    def __len__(self) -> int:
        return len(self._turns)

    def of(self, turn: int) -> list[Piece]:
        """What stays of a turn, in order."""
        return [piece for piece in self._turns[turn].values() if piece is not None] if self._turns else []

    def holds(self, turn: int, place: int) -> bool:
        """Is the message at `place` still there, in this turn?"""
        return self._turns[turn].get(place) is not None

    @property
    def turns(self) -> list[list[Piece]]:
        """What stays of every turn that anything stays of; the current one last, be it empty."""
        held = list(map(self.of, range(len(self))))
        return [turn for turn in held[:-1] if turn] + held[-1:]

    @property
    def decisions(self) -> Decisions:
        """The decisions given and all that were taken; those on messages that left are forgotten."""
        omitted = self._before.omitted.add(self._omitted.items())
        return Decisions(
            omitted,
            frozenset(place for place in self._masked if place not in omitted),
            frozenset(place for place in self._arguments if place not in omitted),
            MappingProxyType({place: cap for place, cap in self._levels.items() if place not in omitted}),
        )

    # -- what a step may do

    def leave(self, turn: int, leaving: Iterable[Piece], layer: str) -> None:
        """Take `leaving` out of a turn; one that has been changed since is known by its place.

        What was invented leaves with what it stands for: a result with its call, a request or a reply
        with the whole turn.
        """
        keys = dict.fromkeys(map(_key, leaving))
        call_leaves = False
        for key in keys:
            piece = self._turns[turn].get(key)
            if piece is None or key == _BRIDGE or is_filler(piece):
                continue
            is_result = piece.message.role == "tool"
            if not is_result:
                call_leaves = key not in self._kept
            if key in self._kept:
                continue
            if piece.index < 0 and not (call_leaves if is_result else self._leaves_whole(turn, keys)):
                continue
            self._turns[turn][key] = None
            self._note(Change(turn, key, piece, None))
            if piece.index >= 0:
                self._omitted[piece.index] = layer
        self._fit_fillers(turn)
        self._bridge(turn)

    def _leaves_whole(self, turn: int, keys: Collection[int]) -> bool:
        """Is nothing that was given left of a turn without those at `keys`?"""
        given = (piece.index for piece in self.of(turn) if piece.index >= 0)
        return all(place in keys and place not in self._kept for place in given)

    def mask(self, turn: int, piece: Piece) -> None:
        """Mask a result; it stays as it is where the mask would not be shorter."""
        if self._may_change(piece) and piece.index not in self._masked:
            self._masked.add(piece.index)
            level = self._levels.pop(piece.index, None)
            self._reshape(turn, piece.index, level)

    def shorten_arguments(self, turn: int, piece: Piece) -> None:
        """Cut the long arguments of a call."""
        if not self._may_change(piece):
            return
        # what was levelled while it was the newest has its share no longer
        level = self._levels.pop(piece.index, None)
        if level is not None or piece.index not in self._arguments:
            self._arguments.add(piece.index)
            self._reshape(turn, piece.index, level)

    def level(self, piece: Piece, share: int) -> None:
        """Hold a result of the current turn, or each long value of a call, to `share` bound tokens."""
        if not self._may_change(piece):
            return
        if piece.message.tool_calls:
            self._arguments.add(piece.index)
        self._levels[piece.index] = share
        self._reshape(self._current, piece.index)

    def unlevel(self, piece: Piece) -> None:
        """Give a result or a call of the current turn what it had before it was levelled."""
        if self._levels.pop(piece.index, None) is not None:
            self._arguments.discard(piece.index)
            self._reshape(self._current, piece.index)

    def _may_change(self, piece: Piece) -> bool:
        return piece.index >= 0 and piece.index not in self._kept

    # -- and how it is taken back

    def changes(self) -> tuple[Change, ...]:
        """What was done since this was last asked."""
        done, self._changes = tuple(self._changes), []
        return done

    def totals_without(self, changes: Sequence[Change]) -> Totals:
        """What would be held if `changes` were taken back."""
        totals = self.totals
        for change in changes:
            totals = self._tallied(totals, change.turn, change.after, change.before)
        return totals

    def give_back(self, changes: Sequence[Change]) -> bool:
        """Take back one step, unless something has happened to its pieces since; whether it was done."""
        if not all(map(self.is_after, changes)):
            return False
        self.totals = self.totals_without(changes)
        for change in changes:
            self._turns[change.turn][change.key] = change.before
            if change.before is None:
                continue
            if change.after is None:
                self._omitted.pop(change.key, None)
                continue
            self._masked.discard(change.key)
            if change.level is not None:
                self._levels[change.key] = change.level
            else:
                self._arguments.discard(change.key)
        return True

    def is_after(self, change: Change) -> bool:
        """Is the piece still what that step left of it?"""
        return self._turns[change.turn].get(change.key) is change.after

    def give_part(self, turn: int, place: int, share: int) -> None:
        """Instead of a mask, as much of a result as `share` bound tokens hold."""
        self._masked.discard(place)
        self._levels[place] = share
        self._reshape(turn, place)

    def _fit_fillers(self, turn: int) -> None:
        """Of what was invented to stand between two answers, only what still does."""
        if not self._fillers[turn]:
            return
        held = [piece for piece in self._turns[turn].values() if piece is not None]
        needed = {id(piece) for piece in without_idle_fillers(held)}
        for key in self._fillers[turn]:
            piece = self._turns[turn][key]
            if piece is not None and id(piece) not in needed:
                self._turns[turn][key] = None
                self._note(Change(turn, key, piece, None))

    def _bridge(self, turn: int) -> None:
        """Stand a reply behind a past turn whose own has left, for a request follows; or take it away."""
        if turn == self._current:
            return
        bridge, others = self._turns[turn].get(_BRIDGE), self.of(turn)[::-1]
        others = [piece for piece in others[:2] if piece is not bridge]
        reply = self._replies[turn] or self._reply
        wanted = reply if others and not is_answer(others[0]) else None
        if bridge is not wanted:
            self._turns[turn][_BRIDGE] = wanted
            self._note(Change(turn, _BRIDGE, bridge, wanted))

    def _reshape(self, turn: int, place: int, level: int | None = None) -> None:
        old = self._turns[turn].get(place)
        if old is None:
            return
        working = Decisions(self._before.omitted, self._masked, self._arguments, self._levels)
        shaped = self._sizes.reshape(old, working)
        self._turns[turn][place] = shaped
        self._note(Change(turn, place, old, shaped, level))

    def _note(self, change: Change) -> None:
        self._changes.append(change)
        self.totals = self._tallied(self.totals, change.turn, change.before, change.after)

    def _tallied(self, totals: Totals, turn: int, old: Piece | None, new: Piece | None) -> Totals:
        is_past = turn != self._current
        count = (new is not None) - (old is not None)
        tokens = (new.tokens if new else 0) - (old.tokens if old else 0)
        return Totals(
            totals.bound + (new.bound if new else 0) - (old.bound if old else 0),
            totals.history + tokens * is_past,
            totals.in_history + count * is_past,
        )


def _invented_for(kept: Set[int], turns: Sequence[Sequence[Piece]]) -> Iterator[int]:
    """The keys of the results that were invented for calls that are kept."""
    for turn in turns:
        call = -1
        for piece in turn:
            if piece.message.role != "tool":
                call = piece.index
            elif piece.index < 0 and call in kept:
                yield _key(piece)


def is_answer(piece: Piece) -> bool:
    """Does the piece end a turn: an assistant's words without a call?"""
    return piece.message.role == "assistant" and not piece.message.tool_calls


def _key(piece: Piece) -> int:
    """The place of a piece; for an invented one, which stands as it was made, something of its own."""
    return piece.index if piece.index >= 0 else -id(piece)
