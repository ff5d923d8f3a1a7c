"""Correct token estimates by the usage that a model reports.

A *group* is what was added between two requests with the same prefix, so that reported minus reported
is its count. Ratios are reported tokens over our plain estimate. The middle one corrects the estimate, the
largest one the upper bound. One pair of ratios a model serves: what was sent is measured and no longer
estimated (see `confirm_count`), so ratios are only asked for what was added since, and ratios by kind of
content brought nothing there.

The first request of a conversation is a group as a whole, and says two things at once: how the messages
count, and what system message, tools and the provider's own additions take. Its surplus goes to the larger of
the two. So tools that are sent more shortly than their JSON do not make prose cheaper, and a provider's
preamble does not make it dearer; and the next conversation begins with the right size of what is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rolling_chat.messages import Json

KEPT_GROUPS = 64
# Until so many groups are known the family's prior holds as well.
GROUPS_TO_TRUST = 8
# A ratio beyond these is no count of this text: a sum of several requests, bytes, somebody else's.
MIN_RATIO, MAX_RATIO = 0.3, 6.0
# The most that a provider adds to a request unasked (Command A with reasoning: 1,380 tokens).
MAX_PREAMBLE = 2_000
# What of a first request's surplus may be a preamble and no ratio, when the bound of prose is taken from it.
_LIKELY_PREAMBLE = 500
# Of a smaller first request, in estimated tokens, a preamble may be the most.
_MIN_WHOLE_TOKENS = 200
# How many first requests are kept, and how many must agree before they bring a bound down.
_KEPT_WHOLES, _WHOLES_TO_TRUST = 16, 3
# First requests whose fixed parts differ by less, in estimated tokens and as a share, speak of the same one.
_NEAR_TOKENS, _NEAR_SHARE = 64, 0.05
# The least that messages or tools take of their estimate, where a bound is at stake.
_LEAST_SHARE = 0.5
# Of a few tokens framing is the most, and says nothing about the next thousand.
_MIN_GROUP_TOKENS = 32
# The largest of a few is rarely the largest of all: what is still to come gets this much on top, divided
# by how many are known.
_UNSEEN = 0.25
# Caps on results are taken in steps, for what was cut must not be cut anew at every reply.
_SHAPE_STEP = 1.5
# The safety margin once this many replies were counted, as a share of the window, unless it was set.
_MEASURED_MARGIN, _REPLIES_TO_MEASURE = 0.02, 3


class Group(NamedTuple):
    """Hold the estimated and the reported size of what was added to a prompt, in tokens.

    Of a whole first request `fixed` is the estimate of system message, tools and the provider's additions.
    """

    estimated: int
    reported: int
    fixed: int = 0

    @property
    def is_plausible(self) -> bool:
        """Return whether both can be counts of the same text, in a whole request beside a preamble."""
        if self.estimated <= 0:
            return False
        preamble = MAX_PREAMBLE if self.fixed else 0
        return (
            MIN_RATIO * self.estimated
            <= self.reported
            <= max(MAX_RATIO * self.estimated, self.estimated + preamble)
        )

    @property
    def messages(self) -> int:
        """Return the estimate of what is not fixed."""
        return self.estimated - self.fixed


class FixedPart(NamedTuple):
    """Hold what goes with every request beside its messages: estimated, measured, at most, in tokens."""

    estimated: int
    tokens: int
    most: int

    def at(self, estimated: int, ratio: float, bound: float) -> FixedPart:
        """Return the part if its plain estimate were another: `ratio` and `bound` are of what is added."""
        more = estimated - self.estimated
        if more < 0:
            tokens = math.ceil(self.tokens * estimated / self.estimated)
            return FixedPart(estimated, tokens, max(tokens, self.most + math.ceil(more * _LEAST_SHARE)))
        tokens = self.tokens + math.ceil(more * ratio)
        return FixedPart(estimated, tokens, max(tokens, self.most + math.ceil(more * bound)))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Hold the factors that correct a model family's plain token estimate.

    `estimate` makes the best estimate. `bound` makes the upper bound; 0 where nothing is known, and
    never below the family's prior until `is_trusted`. `shape` is the coarse estimate that caps on tool
    results go by. `replies` is how many reported a count, and `tries` how many requests it answered or
    refused without one while nothing was known. `fixed` is what first requests of conversations said of
    system message and tools, newest last. `least` is the smallest ratio, 0 where nothing is known.
    """

    estimate: float = 1.0
    bound: float = 0.0
    is_trusted: bool = False
    shape: float = 1.0
    replies: int = 0
    fixed: tuple[FixedPart, ...] = ()
    least: float = 0.0
    tries: int = 0

    @property
    def knows_nothing(self) -> bool:
        """Return whether the model has neither answered nor refused yet."""
        return not self.replies and not self.tries

    def fixed_part(self, estimated: int, bound: int) -> FixedPart | None:
        """Return the size of system message and tools whose plain estimate is `estimated`; None if unknown.

        It is the middle of what was measured nearest to it. `bound` is their bound as if nothing were known,
        which holds until enough first requests agree.
        """
        if not self.fixed or estimated <= 0:
            return None
        nearest = min(abs(part.estimated - estimated) for part in self.fixed)
        within = nearest + max(_NEAR_TOKENS, int(estimated * _NEAR_SHARE))
        growth = max(self.bound, bound / estimated)
        near = [
            part.at(estimated, self.estimate, growth)
            for part in self.fixed
            if abs(part.estimated - estimated) <= within
        ]
        tokens, most = sorted(part.tokens for part in near)[len(near) // 2], max(part.most for part in near)
        is_agreed = len(near) >= _WHOLES_TO_TRUST
        return FixedPart(estimated, tokens, max(tokens, most if is_agreed else max(most, bound)))

    def prior(self, factor: float, prior: float) -> float:
        """Return the factor from an encoding's raw count to the upper bound, for one family."""
        if not self.bound:
            return prior
        return self.bound * factor if self.is_trusted else max(prior, self.bound * factor)


NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class Measurements:
    """Collect a model's last 64 pairs of estimated and reported sizes, and its last 16 first requests.

    Both oldest first. Of first requests only those are kept whose larger part is what is fixed.
    `is_miscounted`: the provider refused a prompt as too long that it had counted as small enough.
    """

    groups: tuple[Group, ...] = ()
    replies: int = 0
    shape: float = 1.0
    wholes: tuple[Group, ...] = ()
    tries: int = 0
    is_miscounted: bool = False

    def tried(self) -> Measurements:
        """Return the measurements after an answer or a refusal that named no count."""
        return replace(self, tries=self.tries + 1)

    def add(self, group: Group | None) -> Measurements:
        """Return the measurements after one more reply, with or without a usable group."""
        replies = self.replies + 1
        if group is not None and group.is_plausible and group.fixed:
            if group.messages <= group.fixed:
                return replace(self, replies=replies, wholes=(*self.wholes, group)[-_KEPT_WHOLES:])
            fixed = self.calibration.fixed_part(group.fixed, group.fixed)
            group = Group(group.messages, group.reported - (fixed.tokens if fixed else group.fixed))
        if group is None or not group.is_plausible or group.estimated < _MIN_GROUP_TOKENS:
            return replace(self, replies=replies)
        groups = (*self.groups, group)[-KEPT_GROUPS:]
        estimate = _middle(groups)
        is_near = 1 / _SHAPE_STEP < estimate / self.shape < _SHAPE_STEP
        shape = self.shape if is_near else estimate
        return replace(self, groups=groups, replies=replies, shape=shape)

    def counted(self) -> Measurements:
        """Return the measurements of a model whose provider counts prompts, which needs no more replies."""
        return replace(self, replies=max(self.replies, _REPLIES_TO_MEASURE))

    @property
    def calibration(self) -> Calibration:
        """Compute the correction factors from the groups, and the fixed parts from first requests."""
        # of prose a whole request only says what a preamble cannot explain
        wholes = [whole.reported / (whole.estimated + _LIKELY_PREAMBLE) for whole in self.wholes]
        ratios = [*(group.reported / group.estimated for group in self.groups), *wholes]
        if not ratios:
            return Calibration(replies=self.replies, tries=self.tries)
        estimate = _middle(self.groups or self._without_preamble)
        return Calibration(
            estimate=estimate,
            bound=math.ceil(max(ratios) * (1 + _UNSEEN / len(ratios)) * 100) / 100,
            is_trusted=len(self.groups) >= GROUPS_TO_TRUST,
            shape=self.shape,
            replies=self.replies,
            fixed=tuple(_fixed_part(whole, estimate) for whole in self.wholes),
            least=_least(self.groups),
            tries=self.tries,
        )

    @property
    def _without_preamble(self) -> Sequence[Group]:
        """What first requests say of prose while nothing else does: only what makes it dearer."""
        large = (whole for whole in self.wholes if whole.estimated >= _MIN_WHOLE_TOKENS)
        rest = [Group(one.estimated, max(one.estimated, one.reported - _LIKELY_PREAMBLE)) for one in large]
        return rest or [Group(1, 1)]

    def to_json(self) -> dict[str, Json]:
        """Return the measurements as plain JSON values."""
        return {
            "groups": [[group.estimated, group.reported] for group in self.groups],
            "wholes": [list(whole) for whole in self.wholes],
            "replies": self.replies,
            "shape": self.shape,
            "tries": self.tries,
            "miscounted": self.is_miscounted,
        }

    @classmethod
    def from_json(cls, data: Json) -> Measurements:
        """Read measurements from JSON; ignore what is not a measurement."""
        if not isinstance(data, dict):
            return cls()
        groups = tuple(filter(None, map(_group, _list(data.get("groups")))))
        wholes = tuple(filter(None, map(_whole, _list(data.get("wholes")))))
        replies, shape, tries = data.get("replies"), data.get("shape"), data.get("tries")
        known = len(groups) + len(wholes)
        return cls(
            groups[-KEPT_GROUPS:],
            max(known, replies) if isinstance(replies, int) else known,
            shape if isinstance(shape, float) and MIN_RATIO <= shape <= MAX_RATIO else 1.0,
            wholes[-_KEPT_WHOLES:],
            max(0, tries) if isinstance(tries, int) else 0,
            data.get("miscounted") is True,
        )


def _fixed_part(whole: Group, ratio: float) -> FixedPart:
    """Return what is left of a first request without its messages, which count at `ratio`."""
    least = max(1, math.ceil(whole.fixed * MIN_RATIO))
    tokens = max(least, whole.reported - math.ceil(whole.messages * ratio))
    return FixedPart(whole.fixed, tokens, max(tokens, whole.reported - int(whole.messages * _LEAST_SHARE)))


def _least(groups: Sequence[Group]) -> float:
    if not groups:
        return 0.0
    smallest = min(group.reported / group.estimated for group in groups)
    return math.floor(smallest / (1 + _UNSEEN / len(groups)) * 100) / 100


def _middle(groups: Sequence[Group]) -> float:
    ratios = sorted(group.reported / group.estimated for group in groups)
    half = len(ratios) // 2
    # not statistics.median: its import is a quarter of this package's
    return round((ratios[half] + ratios[~half]) / 2, 2)


def _group(data: Json) -> Group | None:
    match data:
        case [int() as estimated, int() as reported]:
            group = Group(estimated, reported)
            return group if group.is_plausible else None
        case _:
            return None


def _whole(data: Json) -> Group | None:
    match data:
        case [int() as estimated, int() as reported, int() as fixed] if 0 < fixed <= estimated:
            whole = Group(estimated, reported, fixed)
            return whole if whole.is_plausible else None
        case _:
            return None


def _list(data: Json) -> list[Json]:
    return data if isinstance(data, list) else []


def safety_margin(configured: float, *, is_set: bool, replies: int) -> float:
    """Return the safety margin as a share of the window, which shrinks after a few measured replies."""
    return configured if is_set or replies < _REPLIES_TO_MEASURE else min(configured, _MEASURED_MARGIN)
