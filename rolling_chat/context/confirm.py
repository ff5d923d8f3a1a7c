"""Replace estimated sizes by measured ones once the provider reports the token count of a prompt.

After a reply, the sizes of system message, tools and messages add up exactly to the reported count. The next
prompt is that count plus an estimate of what was added, and a trim keeps the measured sizes of what stays.
The count of a group is distributed among its messages in proportion to their estimates; a reply whose size
was reported when it was written keeps that size. In a first request that is mostly system message and tools,
these get what the messages do not account for.

Some usage figures are sums of several requests (server-side tools, compaction) or leave out cached tokens. An
implausible report is ignored once; two consecutive reports that agree are believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rolling_chat.context.calibration import MIN_RATIO, Group
from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.families import UNKNOWN, family_of
from rolling_chat.context.measured_sizes import Confirmed, SizeKey, characters_of
from rolling_chat.context.plan import ContextPlan, SentPrompt
from rolling_chat.context.tokens import bounding_estimator, count_images

# How far a report may be from the expected count, as a share, if a part of the prompt was counted before...
_MIN_SHARE, _MAX_SHARE = 0.6, 1.6
# ...and above the bound of what is new, or of a first request; with this many tokens left unexplained.
_ABOVE_BOUND, _UNEXPLAINED = 1.5, 2_000
# Two consecutive reports agree if they differ by at most this factor.
_MAX_DISAGREEMENT = 1.33


class Confirmation(NamedTuple):
    """A plan with measured sizes, and the group to calibrate by, if any."""

    plan: ContextPlan
    group: Group | None


def confirm_count(
    plan: ContextPlan, reported: int, *, is_certain: bool = False, memo: CountMemo | None = None
) -> Confirmation:
    """Record the token count that the provider reported for the prompt that came with `plan`.

    A refusal that names a count may be recorded too. A count of 0, or one that cannot be a count of this
    prompt, changes nothing. A doubtful count is only remembered until the next one agrees, unless the caller
    `is_certain` that it belongs to this prompt alone. The sizes are stored only in the returned plan: pass it
    to the next call. `memo` is the memo that the prompt was built with, if any.
    """
    sent = plan.sent
    if sent is None or reported <= 0:
        return Confirmation(plan, None)
    before = plan.confirmed if plan.confirmed and plan.confirmed.model == sent.model else None
    new_positions = [position for position, item in enumerate(sent.items) if not item.measured]
    known = sum(item.tokens for item in sent.items if item.measured)
    is_prefix_unchanged = (
        before is not None and before.estimate == sent.fixed_estimate and known + before.fixed == before.total
    )
    is_repeated = plan.doubted > 0 and 1 / _MAX_DISAGREEMENT <= reported / plan.doubted <= _MAX_DISAGREEMENT
    prefix = before.total if before and is_prefix_unchanged else None
    is_believed = is_certain or is_repeated
    if not is_believed and _is_doubtful(sent, reported, prefix, is_first=before is None):
        return Confirmation(replace(plan, doubted=reported), None)
    sizes = [item.tokens for item in sent.items]
    if before is not None and is_prefix_unchanged:
        group = Group(_plain_count(sent, new_positions, memo), reported - before.total)
        if group.is_plausible:
            for position, share in zip(
                new_positions, _distribute(plan, sent, new_positions, group.reported), strict=True
            ):
                sizes[position] = share
            return Confirmation(
                _with_measured_sizes(plan, sent, before.fixed, sizes),
                _usable_group(sent, new_positions, group),
            )
    # the prefix differs or was counted differently: the report gives the size of everything
    indexes = range(len(sizes))
    whole = Group(sent.fixed_estimate + _plain_count(sent, indexes, memo), reported, sent.fixed_estimate)
    if not whole.is_plausible and not is_repeated:
        return Confirmation(plan, None)
    fixed = reported - sum(sizes)
    if before is not None or sum(sizes) > sent.fixed or fixed < MIN_RATIO * sent.fixed:
        fixed, *sizes = _split_by_weight(reported, [sent.fixed, *sizes])
    measured = _with_measured_sizes(plan, sent, fixed, sizes)
    return Confirmation(measured, None if before else _usable_group(sent, indexes, whole))


def _distribute(
    plan: ContextPlan, sent: SentPrompt, new_positions: Sequence[int], total: int
) -> Sequence[int]:
    """Distribute `total` among the new items: replies keep their reported sizes, others share the rest."""
    items = [sent.items[position] for position in new_positions]
    measured = plan.measured.of(sent.model)
    known = [measured.find_reply(item.index, item.message) for item in items]
    weights = [0 if size is not None else item.tokens for size, item in zip(known, items, strict=True)]
    rest = Group(sum(weights), total - sum(size or 0 for size in known))
    if not rest.is_plausible:
        return _split_by_weight(total, [item.tokens for item in items])
    shares = _split_by_weight(rest.reported, weights)
    return [share if size is None else size for size, share in zip(known, shares, strict=True)]


def _is_doubtful(sent: SentPrompt, reported: int, prefix: int | None, *, is_first: bool) -> bool:
    """Return whether a reported count is implausible, given that its `prefix` was counted before."""
    bound = sum(item.bound for item in sent.items if not item.measured)
    if is_first:
        # for an unknown tokenizer, even the bound may be far too low
        family = family_of(sent.model)
        max_reported = (
            bound + sent.fixed * max(1.0, family.prior / family.factor)
        ) * _ABOVE_BOUND + _UNEXPLAINED
        return family.name != UNKNOWN.name and reported > max_reported
    expected = sent.fixed + sum(item.tokens for item in sent.items)
    is_near = _MIN_SHARE * expected <= reported <= _MAX_SHARE * expected
    if is_near or abs(reported - expected) <= _UNEXPLAINED:
        return False
    return prefix is None or not 0 <= reported - prefix <= bound * _ABOVE_BOUND + _UNEXPLAINED


def _with_measured_sizes(
    plan: ContextPlan, sent: SentPrompt, fixed: int, sizes: Sequence[int]
) -> ContextPlan:
    items, measured = [], dict[SizeKey, int]()
    for item, size in zip(sent.items, sizes, strict=True):
        is_same = item.measured and item.tokens == size
        items.append(item if is_same else replace(item, tokens=size, bound=size, measured=True))
        if not is_same and item.index >= 0 and not item.normalized.excluded:
            measured[item.index, characters_of(item.message)] = size
    confirmed = Confirmed(sent.model, fixed + sum(sizes), fixed, sent.fixed_estimate)
    index = plan.index
    if index is not None:
        # messages that only close the branch are at its end and are invented again for every prompt
        index = replace(index, items=tuple(items[: len(index.items)]))
    known = plan.measured.of(sent.model).add(measured)
    return replace(plan, confirmed=confirmed, measured=known, index=index, sent=None, doubted=0)


def _usable_group(sent: SentPrompt, indexes: Sequence[int], group: Group) -> Group | None:
    """Return the group, or None if it contains images, of which only a ceiling is known."""
    return None if any(count_images(sent.items[position].message) for position in indexes) else group


def _plain_count(sent: SentPrompt, indexes: Sequence[int], memo: CountMemo | None) -> int:
    estimator = bounding_estimator(sent.model, memo=memo)
    return sum(estimator.count_message(sent.items[position].message) for position in indexes)


def _split_by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """Split `total` into integers in proportion to `weights`; they add up to `total`."""
    whole, shares, cumulative, assigned = max(1, sum(weights)), [], 0, 0
    for weight in weights:
        cumulative += weight
        share = total * cumulative // whole - assigned
        shares.append(share)
        assigned += share
    return shares
