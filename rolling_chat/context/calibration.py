"""Correct token estimates by the usage that a model reports.

A *group* is the material added between two requests with the same prefix, so its count is the difference of
the two reports. A ratio is reported tokens over our plain estimate. The median ratio corrects the estimate,
the largest one the upper bound. One pair of ratios per model is enough: whatever was sent has been measured
(see `confirm_count`), so ratios apply only to what was added since. Ratios by kind of content did not improve
on that.

The first request of a conversation is one group, and its count mixes two unknowns: how the messages count,
and the size of the system message, the tools and the provider's own additions. The surplus is attributed to
the larger part. Tools that are sent in a shorter form than their JSON therefore do not make prose look
cheaper, a provider's preamble does not make it look more expensive, and the next conversation starts with the
right fixed size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rolling_chat.messages import Json

KEPT_GROUPS = 64
# The family's prior stays in effect until this many groups are known.
GROUPS_TO_TRUST = 8
# A ratio outside this range is not a count of this text: a sum of several requests, bytes, another prompt.
MIN_RATIO, MAX_RATIO = 0.3, 6.0
# The largest preamble that a provider adds to a request unasked (Command A with reasoning: 1,380 tokens).
MAX_PREAMBLE = 2_000
# The part of a first request's surplus that may be a preamble, ignored when it bounds the ratio of prose.
_LIKELY_PREAMBLE = 500
# In a first request of fewer estimated tokens, a preamble may outweigh everything else.
_MIN_FIRST_REQUEST_TOKENS = 200
# How many first requests are kept, and how many must agree before they lower a bound.
_KEPT_FIRST_REQUESTS, _FIRST_REQUESTS_TO_TRUST = 16, 3
# First requests whose fixed parts differ by less, in estimated tokens or as a share, describe the same one.
_NEAR_TOKENS, _NEAR_SHARE = 64, 0.05
# The smallest share of their estimate that messages or tools are assumed to take in a bound.
_MIN_SHARE = 0.5
# A smaller group is mostly framing and says nothing about the next thousand tokens.
_MIN_GROUP_TOKENS = 32
# The largest of a few ratios is rarely the largest of all: it is raised by this share, divided by the number
# of ratios.
_UNSEEN = 0.25
# Caps on results change in steps of this factor, so that results are not cut again after every reply.
_SHAPE_STEP = 1.5
# The safety margin after this many counted replies, as a share of the window, unless the user set one.
_MEASURED_MARGIN, _REPLIES_TO_MEASURE = 0.02, 3


class Group(NamedTuple):
    """The estimated and the reported size of an addition to a prompt, in tokens.

    For a whole first request, `fixed` is the estimate of system message, tools and the provider's additions.
    """

    estimated: int
    reported: int
    fixed: int = 0

    @property
    def is_plausible(self) -> bool:
        """Whether both sizes can be counts of the same text, allowing for a preamble in a whole request."""
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
        """The estimate of the messages alone, without the fixed part."""
        return self.estimated - self.fixed


class FixedPart(NamedTuple):
    """The part of every request that is not messages, in tokens: estimated, measured and upper bound."""

    estimated: int
    tokens: int
    upper: int

    def resized(self, estimated: int, ratio: float, bound: float) -> FixedPart:
        """Return the part for another plain estimate; `ratio` and `bound` apply to the difference."""
        added = estimated - self.estimated
        if added < 0:
            tokens = math.ceil(self.tokens * estimated / self.estimated)
            return FixedPart(estimated, tokens, max(tokens, self.upper + math.ceil(added * _MIN_SHARE)))
        tokens = self.tokens + math.ceil(added * ratio)
        return FixedPart(estimated, tokens, max(tokens, self.upper + math.ceil(added * bound)))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors that correct a model family's plain token estimate.

    `estimate` yields the best estimate. `bound` yields the upper bound: 0 if nothing is known, and at least
    the family's prior until `is_trusted`. `shape` is the coarse factor that caps on tool results use.
    `replies` counts the replies that reported usage, `tries` the requests that were answered or refused
    without a count while nothing was known. `fixed` lists what first requests revealed about system message
    and tools, newest last. `least` is the smallest ratio, 0 if nothing is known.
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
        """Whether the model has neither answered nor refused yet."""
        return not self.replies and not self.tries

    def fixed_part(self, estimated: int, bound: int) -> FixedPart | None:
        """Return the size of system message and tools whose plain estimate is `estimated`; None if unknown.

        It is the median of the measurements nearest to it. `bound` is their bound without any measurement; it
        stays in effect until enough first requests agree.
        """
        if not self.fixed or estimated <= 0:
            return None
        nearest = min(abs(part.estimated - estimated) for part in self.fixed)
        within = nearest + max(_NEAR_TOKENS, int(estimated * _NEAR_SHARE))
        growth = max(self.bound, bound / estimated)
        near = [
            part.resized(estimated, self.estimate, growth)
            for part in self.fixed
            if abs(part.estimated - estimated) <= within
        ]
        tokens, upper = sorted(part.tokens for part in near)[len(near) // 2], max(part.upper for part in near)
        is_agreed = len(near) >= _FIRST_REQUESTS_TO_TRUST
        return FixedPart(estimated, tokens, max(tokens, upper if is_agreed else max(upper, bound)))

    def prior(self, factor: float, prior: float) -> float:
        """Return the factor from an encoding's raw count to the upper bound, for one family."""
        if not self.bound:
            return prior
        return self.bound * factor if self.is_trusted else max(prior, self.bound * factor)


NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class Measurements:
    """A model's last 64 pairs of estimated and reported sizes, and its last 16 first requests, oldest first.

    Only first requests whose fixed part is the larger one are kept. `is_miscounted` means that the provider
    refused a prompt as too long although its own count had said that it fits.
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
                return replace(self, replies=replies, wholes=(*self.wholes, group)[-_KEPT_FIRST_REQUESTS:])
            fixed = self.calibration.fixed_part(group.fixed, group.fixed)
            group = Group(group.messages, group.reported - (fixed.tokens if fixed else group.fixed))
        if group is None or not group.is_plausible or group.estimated < _MIN_GROUP_TOKENS:
            return replace(self, replies=replies)
        groups = (*self.groups, group)[-KEPT_GROUPS:]
        estimate = _median(groups)
        is_near = 1 / _SHAPE_STEP < estimate / self.shape < _SHAPE_STEP
        shape = self.shape if is_near else estimate
        return replace(self, groups=groups, replies=replies, shape=shape)

    def counted(self) -> Measurements:
        """Return the measurements of a model whose provider counts prompts, so that no replies are needed."""
        return replace(self, replies=max(self.replies, _REPLIES_TO_MEASURE))

    @property
    def calibration(self) -> Calibration:
        """Compute the correction factors from the groups, and the fixed parts from first requests."""
        # a whole request says about prose only what a preamble cannot explain
        wholes = [whole.reported / (whole.estimated + _LIKELY_PREAMBLE) for whole in self.wholes]
        ratios = [*(group.reported / group.estimated for group in self.groups), *wholes]
        if not ratios:
            return Calibration(replies=self.replies, tries=self.tries)
        estimate = _median(self.groups or self._without_preamble)
        return Calibration(
            estimate=estimate,
            bound=math.ceil(max(ratios) * (1 + _UNSEEN / len(ratios)) * 100) / 100,
            is_trusted=len(self.groups) >= GROUPS_TO_TRUST,
            shape=self.shape,
            replies=self.replies,
            fixed=tuple(_fixed_part(whole, estimate) for whole in self.wholes),
            least=_min_ratio(self.groups),
            tries=self.tries,
        )

    @property
    def _without_preamble(self) -> Sequence[Group]:
        """First requests as evidence about prose while there is no other; only those that raise its ratio."""
        large = (whole for whole in self.wholes if whole.estimated >= _MIN_FIRST_REQUEST_TOKENS)
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
        """Read measurements from JSON; ignore invalid entries."""
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
            wholes[-_KEPT_FIRST_REQUESTS:],
            max(0, tries) if isinstance(tries, int) else 0,
            data.get("miscounted") is True,
        )


def _fixed_part(whole: Group, ratio: float) -> FixedPart:
    """Return the fixed part of a first request, given that its messages count at `ratio`."""
    least = max(1, math.ceil(whole.fixed * MIN_RATIO))
    tokens = max(least, whole.reported - math.ceil(whole.messages * ratio))
    return FixedPart(whole.fixed, tokens, max(tokens, whole.reported - int(whole.messages * _MIN_SHARE)))


def _min_ratio(groups: Sequence[Group]) -> float:
    if not groups:
        return 0.0
    smallest = min(group.reported / group.estimated for group in groups)
    return math.floor(smallest / (1 + _UNSEEN / len(groups)) * 100) / 100


def _median(groups: Sequence[Group]) -> float:
    ratios = sorted(group.reported / group.estimated for group in groups)
    half = len(ratios) // 2
    # not statistics.median: importing it takes a quarter of this package's import time
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
    """Return the safety margin as a share of the window; it shrinks after a few measured replies."""
    return configured if is_set or replies < _REPLIES_TO_MEASURE else min(configured, _MEASURED_MARGIN)
