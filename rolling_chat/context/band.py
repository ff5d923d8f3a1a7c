"""An interval around a prompt's estimated size that contains 99 % of the true counts.

Tokens that the model has counted are certain; after a trim they are sums of shares and slightly less certain.
A reply's reported size is nearly certain. Everything else is estimated: its upper end comes from the bound,
its lower end from how far recorded requests of the model family fell below their estimates
(`tests/benchmarks/band.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rolling_chat.context.measured_sizes import reply_bound
from rolling_chat.context.prompt_items import FixedSizes, PromptItem, Sizes

# The smallest recorded share of the estimate: for a tokenizer that is known exactly, for one approximated by
# another, and for an unknown one, whose estimate is a bound.
_MIN_EXACT, _MIN_APPROXIMATE, _MIN_UNKNOWN = 0.88, 0.65, 0.4
# A text's bound follows the largest ratio so far. The next ratio may lie 1.5 times as far above the estimate
# as the bound does; 3 times as far if the tokenizer is unknown and not enough replies have been measured.
_BEYOND_BOUND, _BEYOND_UNKNOWN = 1.5, 3.0
# A reply comes back as this share of its reported size, or as `reply_bound` at most.
_MIN_REPLY, _MAX_REPLY = 0.88, 1.03
# Tokens of framing that a message and a call may have beyond, or below, their known size.
_MESSAGE, _CALL = 12, 48
# Tokens that a provider may add to a first request.
_REQUEST = 64
# A group's count is split by estimates, so the part that remains after a trim may be off by this share.
_AFTER_TRIM = 0.04


class Band(NamedTuple):
    """How far the true count may lie below and above an estimate, in tokens.

    `spread` is the largest relative error of the estimate of additional text.
    """

    below: int
    above: int
    spread: float


def band_around(items: Iterable[PromptItem], fixed: FixedSizes, sizes: Sizes) -> Band:
    """Return the band of a prompt with `items`; `fixed` is the size of the system message and the tools."""
    low, high = _ratios(sizes)
    below, above = _fixed_distances(fixed, sizes, low)
    known = 0
    for item in items:
        if item.measured:
            known += item.tokens
            continue
        item_below, item_above = _item_distances(item, sizes, low)
        below, above = below + item_below, above + item_above
    confirmed = sizes.confirmed
    if known and (confirmed is None or known + confirmed.fixed != confirmed.total):
        below, above = below + known * _AFTER_TRIM, above + known * _AFTER_TRIM
    return Band(math.ceil(below), math.ceil(above), max(1 - low, high - 1))


def _ratios(sizes: Sizes) -> tuple[float, float]:
    """Return the smallest and the largest true size of a text, as shares of its estimate."""
    family, calibration = sizes.bound.family, sizes.config.calibration
    high = max(1.0, sizes.bound.prior / family.factor / calibration.estimate)
    if sizes.estimate != sizes.bound:  # chosen by name or registered: its accuracy is unknown
        return _MIN_UNKNOWN, high
    if not family.encoding:
        low = _MIN_UNKNOWN
    else:
        low = _MIN_EXACT if family.factor == 1.0 and family.prior <= 1.06 else _MIN_APPROXIMATE
    if not calibration.least:
        return low, high
    measured = min(calibration.least / calibration.estimate, 1 / (1 + _BEYOND_BOUND * (high - 1)))
    return measured if calibration.is_trusted else min(low, measured), high


def _fixed_distances(fixed: FixedSizes, sizes: Sizes, low: float) -> tuple[float, float]:
    tokens = fixed.system + fixed.tools
    above = max(0, fixed.system_bound + fixed.tools_bound - tokens)
    if sizes.confirmed is not None:
        return above, above
    return (1 - low) * tokens + _REQUEST, above


def _item_distances(item: PromptItem, sizes: Sizes, low: float) -> tuple[float, float]:
    framing = _MESSAGE + _CALL * len(item.message.tool_calls)
    if item.index >= 0 and sizes.measured.find_reply(item.index, item.message) is not None:
        # it may include hidden reasoning or omit a part, so the interval always includes our own estimate
        own, _ = sizes.estimate_and_bound(item.message)
        smallest = min(_MIN_REPLY * item.tokens, low * own)
        largest = max(min(item.bound, reply_bound(item.message, math.ceil(_MAX_REPLY * item.tokens))), own)
        return item.tokens - smallest + framing, largest - item.tokens
    is_known = sizes.bound.family.encoding or sizes.config.calibration.is_trusted
    beyond = _BEYOND_BOUND if is_known else _BEYOND_UNKNOWN
    return (1 - low) * item.tokens + framing, beyond * (item.bound - item.tokens) + framing
