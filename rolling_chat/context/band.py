"""The band around the estimate of a prompt, which 99 % of the true counts lie in.

What the model has counted is known. After a trim it is a sum of shares, and a little less certain. What it
reported of a reply is nearly so. The rest is estimated: its upper end goes by the bound, its lower end by
how far below their estimate the recorded requests of a family lie. `tests/benchmarks/band.py` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rolling_chat.context.measured_sizes import reply_bound
from rolling_chat.context.prompt_items import Fixed, PromptItem, Sizes

# The least that was recorded, as a share of the estimate: of a tokenizer that is known exactly, of one that
# another stands for, and of one that nothing is known of, whose estimate is a bound.
_LEAST_EXACT, _LEAST_NEAR, _LEAST_UNKNOWN = 0.88, 0.65, 0.4
# The bound of a text goes by the largest ratio so far; the next one may be half as far above it again.
# Of a tokenizer that nothing is known of, and that a few replies have told of, it may be three times as far.
_BEYOND_BOUND, _BEYOND_UNKNOWN = 1.5, 3.0
# A reply comes back as so much of what was reported of it, or up to `reply_bound`.
_LEAST_REPLY, _MOST_REPLY = 0.88, 1.03
# Tokens of framing by which a message and a call may differ from what is known of them.
_MESSAGE, _CALL = 12, 48
# Of a first request, for what the provider adds.
_REQUEST = 64
# The shares of a group's count are estimates: what is left of it after a trim may be off by so much.
_AFTER_TRIM = 0.04


class Band(NamedTuple):
    """Hold by how many tokens the true count may lie below and above the estimate.

    `spread` is the share by which the estimate of one more text may be off.
    """

    below: int
    above: int
    spread: float


def band_around(items: Iterable[PromptItem], fixed: Fixed, sizes: Sizes) -> Band:
    """Return the band of a prompt with these items; `fixed` is the size of system message and tools."""
    low, high = _ratios(sizes)
    below, above = _of_fixed(fixed, sizes, low)
    known = 0
    for item in items:
        if item.measured:
            known += item.tokens
            continue
        less, more = _of_item(item, sizes, low)
        below, above = below + less, above + more
    confirmed = sizes.confirmed
    if known and (confirmed is None or known + confirmed.fixed != confirmed.total):
        below, above = below + known * _AFTER_TRIM, above + known * _AFTER_TRIM
    return Band(math.ceil(below), math.ceil(above), max(1 - low, high - 1))


def _ratios(sizes: Sizes) -> tuple[float, float]:
    """The least and the most that a text may take, as shares of its estimate."""
    family, calibration = sizes.bound.family, sizes.config.calibration
    high = max(1.0, sizes.bound.prior / family.factor / calibration.estimate)
    if sizes.estimate != sizes.bound:  # it was chosen by name, or registered: nothing is known of it
        return _LEAST_UNKNOWN, high
    if not family.encoding:
        least = _LEAST_UNKNOWN
    else:
        least = _LEAST_EXACT if family.factor == 1.0 and family.prior <= 1.06 else _LEAST_NEAR
    if not calibration.least:
        return least, high
    measured = min(calibration.least / calibration.estimate, 1 / (1 + _BEYOND_BOUND * (high - 1)))
    return measured if calibration.is_trusted else min(least, measured), high


def _of_fixed(fixed: Fixed, sizes: Sizes, low: float) -> tuple[float, float]:
    tokens = fixed.system + fixed.tools
    above = max(0, fixed.system_bound + fixed.tools_bound - tokens)
    if sizes.confirmed is not None:
        return above, above
    return (1 - low) * tokens + _REQUEST, above


def _of_item(item: PromptItem, sizes: Sizes, low: float) -> tuple[float, float]:
    framing = _MESSAGE + _CALL * len(item.message.tool_calls)
    if item.index >= 0 and sizes.measured.find_reply(item.index, item.message) is not None:
        # it may hold hidden reasoning, or leave out a part: our own estimate is never outside
        own, _ = sizes.estimated(item.message)
        least = min(_LEAST_REPLY * item.tokens, low * own)
        most = max(min(item.bound, reply_bound(item.message, math.ceil(_MOST_REPLY * item.tokens))), own)
        return item.tokens - least + framing, most - item.tokens
    is_known = sizes.bound.family.encoding or sizes.config.calibration.is_trusted
    beyond = _BEYOND_BOUND if is_known else _BEYOND_UNKNOWN
    return (1 - low) * item.tokens + framing, beyond * (item.bound - item.tokens) + framing
