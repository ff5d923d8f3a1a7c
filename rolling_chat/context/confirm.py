"""Replace estimated sizes by measured ones, once the provider has reported its count of a prompt.

After a reply the sizes of system message, tools and messages add up to what was reported, to the token.
So the next prompt is that count and an estimate of what was added since; and what is left after a trim
is what was measured of it. The count of a group is shared among its messages by their estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rolling_chat.context.calibration import Group
from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.plan import ContextPlan, SentPrompt
from rolling_chat.context.prompt_items import Confirmed, Size, characters_of
from rolling_chat.context.tokens import bounding_estimator, count_images


class Confirmation(NamedTuple):
    """Hold the plan with measured sizes, and the group to calibrate by, if any."""

    plan: ContextPlan
    group: Group | None


def confirm_count(plan: ContextPlan, reported: int, *, memo: CountMemo | None = None) -> Confirmation:
    """Record the token count that the provider reported for the prompt that came with `plan`.

    Also for a refusal that names a count. A count of 0, or one that can be no count of this prompt,
    changes nothing. The sizes are in the plan that comes back, and nowhere else: give it to the next call.
    `memo` is that of the prompt, if it had one.
    """
    sent = plan.sent
    if sent is None or reported <= 0:
        return Confirmation(plan, None)
    before = plan.confirmed if plan.confirmed and plan.confirmed.model == sent.model else None
    fresh = [position for position, item in enumerate(sent.items) if not item.measured]
    known = sum(item.tokens for item in sent.items if item.measured)
    stands = (
        before is not None and before.estimate == sent.fixed_estimate and known + before.fixed == before.total
    )
    sizes = [item.tokens for item in sent.items]
    if before is not None and stands:
        group = Group(_plain(sent, fresh, memo), reported - before.total)
        if group.is_plausible:
            for position, share in zip(
                fresh, _shares(group.reported, [sizes[position] for position in fresh]), strict=True
            ):
                sizes[position] = share
            return Confirmation(_measured(plan, sent, before.fixed, sizes), _telling(sent, fresh, group))
    # the prefix is another, or was counted otherwise: all of it is as large as was said just now
    indexes = range(len(sizes))
    whole = Group(sent.fixed_estimate + _plain(sent, indexes, memo), reported)
    if not whole.is_plausible:
        return Confirmation(plan, None)
    fixed, *sizes = _shares(reported, [sent.fixed, *sizes])
    measured = _measured(plan, sent, fixed, sizes)
    return Confirmation(measured, None if before else _telling(sent, indexes, whole))


def _measured(plan: ContextPlan, sent: SentPrompt, fixed: int, sizes: Sequence[int]) -> ContextPlan:
    items, measured = [], dict[int, Size]()
    for item, size in zip(sent.items, sizes, strict=True):
        is_same = item.measured and item.tokens == size
        items.append(item if is_same else replace(item, tokens=size, bound=size, measured=True))
        if not is_same and item.index >= 0 and item.is_whole:
            measured[item.index] = Size(size, characters_of(item.message))
    confirmed = Confirmed(sent.model, fixed + sum(sizes), fixed, sent.fixed_estimate)
    index = plan.index
    if index is not None:
        # what only closes the branch stands at its end, and is made anew for every prompt
        index = replace(index, items=tuple(items[: len(index.items)]))
    known = plan.measured.of(sent.model).add(measured)
    return replace(plan, confirmed=confirmed, measured=known, index=index, sent=None)


def _telling(sent: SentPrompt, indexes: Sequence[int], group: Group) -> Group | None:
    """The group, unless an image is in it: those are known by a ceiling only."""
    return None if any(count_images(sent.items[position].message) for position in indexes) else group


def _plain(sent: SentPrompt, indexes: Sequence[int], memo: CountMemo | None) -> int:
    estimator = bounding_estimator(sent.model, memo=memo)
    return sum(estimator.count_message(sent.items[position].message) for position in indexes)


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts after `weights`; they add up to it."""
    whole, shares, so_far, given = max(1, sum(weights)), [], 0, 0
    for weight in weights:
        so_far += weight
        share = total * so_far // whole - given
        shares.append(share)
        given += share
    return shares
