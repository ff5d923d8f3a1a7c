"""Correct token estimates by the usage that a model reports.

A *group* is what was added between two requests with the same prefix, so that reported minus reported
is its count; the first request of a conversation is a group as a whole. Ratios are reported tokens over
our plain estimate. The middle one corrects the estimate, the largest one the upper bound. One pair of
ratios a model serves: what was sent is measured and no longer estimated (see `confirm_count`), so ratios are
only asked for what was added since, and ratios by kind of content brought nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rolling_chat.messages import Json

KEPT_GROUPS = 64
# Until so many groups are known the family's prior holds as well.
GROUPS_TO_TRUST = 8
# A ratio beyond these is no count of this text: a sum of several requests, bytes, somebody else's.
MIN_RATIO, MAX_RATIO = 0.3, 6.0
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
    """Hold the estimated and the reported size of what was added to a prompt, in tokens."""

    estimated: int
    reported: int

    @property
    def is_plausible(self) -> bool:
        """Return whether both can be counts of the same text."""
        return self.estimated > 0 and MIN_RATIO <= self.reported / self.estimated <= MAX_RATIO


@dataclass(frozen=True, slots=True)
class Calibration:
    """Hold the factors that correct a model family's plain token estimate.

    `estimate` makes the best estimate. `bound` makes the upper bound; 0 where nothing is known, and
    never below the family's prior until `is_trusted`. `shape` is the coarse estimate that caps on tool
    results go by. `replies` is how many reported a count.
    """

    estimate: float = 1.0
    bound: float = 0.0
    is_trusted: bool = False
    shape: float = 1.0
    replies: int = 0

    def prior(self, factor: float, prior: float) -> float:
        """Return the factor from an encoding's raw count to the upper bound, for one family."""
        if not self.bound:
            return prior
        return self.bound * factor if self.is_trusted else max(prior, self.bound * factor)


NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class Measurements:
    """Collect a model's last 64 pairs of estimated and reported sizes, oldest first."""

    groups: tuple[Group, ...] = ()
    replies: int = 0
    shape: float = 1.0

    def add(self, group: Group | None) -> Measurements:
        """Return the measurements after one more reply, with or without a usable group."""
        replies = self.replies + 1
        if group is None or not group.is_plausible or group.estimated < _MIN_GROUP_TOKENS:
            return Measurements(self.groups, replies, self.shape)
        groups = (*self.groups, group)[-KEPT_GROUPS:]
        estimate = _middle(groups)
        is_near = 1 / _SHAPE_STEP < estimate / self.shape < _SHAPE_STEP
        return Measurements(groups, replies, self.shape if is_near else estimate)

    @property
    def calibration(self) -> Calibration:
        """Compute the correction factors from the groups."""
        if not self.groups:
            return Calibration(replies=self.replies)
        largest = max(group.reported / group.estimated for group in self.groups)
        unseen = _UNSEEN / len(self.groups)
        return Calibration(
            estimate=_middle(self.groups),
            bound=math.ceil(largest * (1 + unseen) * 100) / 100,
            is_trusted=len(self.groups) >= GROUPS_TO_TRUST,
            shape=self.shape,
            replies=self.replies,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the measurements as plain JSON values."""
        return {
            "groups": [list(group) for group in self.groups],
            "replies": self.replies,
            "shape": self.shape,
        }

    @classmethod
    def from_json(cls, data: Json) -> Measurements:
        """Read measurements from JSON; ignore what is not a measurement."""
        if not isinstance(data, dict):
            return cls()
        groups = tuple(filter(None, map(_group, _list(data.get("groups")))))
        replies, shape = data.get("replies"), data.get("shape")
        return cls(
            groups[-KEPT_GROUPS:],
            max(len(groups), replies) if isinstance(replies, int) else len(groups),
            shape if isinstance(shape, float) and MIN_RATIO <= shape <= MAX_RATIO else 1.0,
        )


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


def _list(data: Json) -> list[Json]:
    return data if isinstance(data, list) else []


def safety_margin(configured: float, *, is_set: bool, replies: int) -> float:
    """Return the safety margin as a share of the window, which shrinks after a few measured replies."""
    return configured if is_set or replies < _REPLIES_TO_MEASURE else min(configured, _MEASURED_MARGIN)
