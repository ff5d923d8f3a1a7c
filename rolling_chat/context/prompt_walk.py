"""Walk the branch: the first stage of building a prompt, which reads every message that may be sent once.

Messages that the plan has already processed are taken over. Only newer ones are repaired, shaped and
measured, and of many only those for which a prompt can have room: see `branch_parts`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rolling_chat.context.branch_parts import (
    NOTHING_INFERRED,
    Inferred,
    first_request,
    is_far_beyond,
    newest_turns,
    newest_turns_over,
    parts_with_gaps,
)
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.pins import EXCLUDED_RESULT, PinEffects, Pins, request_of, resolve_pins
from rolling_chat.context.plan import ContextPlan, PlanIndex
from rolling_chat.context.prompt_items import Decisions, PromptItem, Sizes
from rolling_chat.context.repair import ODD_FIELD, NormalizedMessage, Repairer, without_blank_text
from rolling_chat.context.summary_text import Summary, cut_to_turn_end
from rolling_chat.context.surviving import omitted_with_call, surviving_of
from rolling_chat.context.tokens import Tools
from rolling_chat.context.turns import opens_with_system
from rolling_chat.message_validation import normalize_message
from rolling_chat.messages import JsonObject, Message
from rolling_chat.todo_list import list_of

# With rolling off, up to this many new messages are always read...
_ALWAYS_READ = 1_000
# ...and of more, the newest that add up to this many windows of tokens: such a prompt can never fit.
_MAX_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """The inputs of one prompt.

    `given_plan` is the plan that the caller passed; `plan` is the same if it is valid for this branch, model
    and window, else None. `ready` is the newest summary, cut to whole turns. `is_settled` forbids new
    decisions.
    """

    branch: Sequence[Message | JsonObject]
    config: ContextConfig
    sizes: Sizes
    window: int
    plan: ContextPlan | None
    given_plan: ContextPlan | None
    pins: Pins
    pin_effects: PinEffects
    ready: Summary | None
    takes_summary: bool
    is_settled: bool
    system: Message | None

    @property
    def may_decide(self) -> bool:
        """Whether this prompt may omit messages that earlier ones did not."""
        return self.config.enabled and not self.is_settled

    @classmethod
    def of(
        cls,
        messages: Sequence[Message] | Sequence[JsonObject],
        config: ContextConfig,
        tools: Tools,
        model: str | None,
        plan: ContextPlan | None,
        *,
        pins: Pins | None = None,
        summary: Summary | None = None,
        takes_summary: bool = False,
        is_settled: bool = False,
        memo: CountMemo | None = None,
    ) -> PromptInputs:
        """Collect the inputs of a prompt; without `pins`, the plan's pins are active."""
        known = plan or ContextPlan()
        memo = memo if memo is not None else CountMemo()
        sizes = Sizes.of(config, model, tools, memo, confirmed=known.confirmed, measured=known.measured)
        window = sizes.budget(None).window
        active_pins = pins if pins is not None else known.pins
        return cls(
            branch=messages,
            config=config,
            sizes=sizes,
            window=window,
            plan=plan if plan is not None and plan.fits(messages, model, window) else None,
            given_plan=plan,
            pins=active_pins,
            pin_effects=resolve_pins(messages, active_pins),
            ready=cut_to_turn_end(summary, messages) if summary is not None else None,
            takes_summary=takes_summary,
            is_settled=is_settled,
            system=_system_of(messages),
        )


@dataclass(frozen=True, slots=True)
class WalkedBranch:
    """The branch as prompt items, before this prompt makes decisions of its own.

    `before` are the decisions of the plan; `base` also includes messages that were omitted unread. `items`
    are the branch without its `inferred` part; `closing` are invented messages that only close it for this
    prompt. `index` caches what the next plan need not read again.
    """

    before: Decisions
    base: Decisions
    items: Sequence[PromptItem]
    closing: Sequence[PromptItem]
    index: PlanIndex
    inferred: Inferred

    @property
    def turns(self) -> list[list[PromptItem]]:
        """The items grouped by turn, including those that close the branch."""
        turns: list[list[PromptItem]] = []
        for item in (*self.items, *self.closing):
            if not turns or item.opens_turn:
                turns.append([])
            turns[-1].append(item)
        return turns


def walk(inputs: PromptInputs) -> WalkedBranch:
    """Repair and shape new messages of the branch; reuse the items that the plan has cached."""
    before, index = _decisions_before(inputs), _resume(inputs)
    base, omitted = before, _omitted_unread(inputs, index, before)
    if omitted is not before.omitted:
        base = replace(before, omitted=omitted)
    unseen = _first_to_read(inputs, index, omitted)
    parts = parts_with_gaps(inputs.branch, unseen, omitted)
    fresh, unfit, repairer = _repair_parts(inputs, index, parts, base)
    task = index.task if index.task >= 0 else _find_task(inputs, index, parts, fresh)
    todos = (one.index for one in reversed(fresh) if list_of(one.message) is not None)
    todo = next(todos, max(index.todo, before.todo_index)) if inputs.config.todo else -1
    # messages after the plan's were never omitted, and may begin in the middle of a turn
    kept = fresh if omitted.end <= index.seen else list(surviving_of(fresh, omitted))
    if kept is not fresh:
        unfit += omitted_with_call(fresh, kept, omitted)
    shape = inputs.sizes.shape
    items = [*index.items, *(shape(one, base) for one in kept)]
    unseen = unseen if unseen > index.seen else index.unseen
    index = replace(
        index, repairer=repairer.copy(), task=task, unfit=(*index.unfit, *unfit), todo=todo, unseen=unseen
    )
    closing = repairer.finish() if inputs.branch and repairer.last not in omitted else ()
    inferred = _extrapolate(inputs, items, unseen)
    return WalkedBranch(before, base, items, [shape(one, base) for one in closing], index, inferred)


def _find_task(
    inputs: PromptInputs, index: PlanIndex, parts: Sequence[range], fresh: Sequence[NormalizedMessage]
) -> int:
    """Return the index of the branch's first request; -1 if it has none yet."""
    if parts and parts[0].start > index.seen:  # it may have been omitted
        return first_request(inputs.branch, index.seen, inputs.pin_effects.excluded)
    return next((one.index for one in fresh if one.opens_turn and one.index >= 0), -1)


def _omitted_unread(inputs: PromptInputs, index: PlanIndex, before: Decisions) -> IndexRanges:
    """Return what is omitted unread: earlier omissions, and turns far beyond the history window."""
    branch, first, effects = inputs.branch, index.seen, inputs.pin_effects
    if not inputs.may_decide or not is_far_beyond(branch, first, before.omitted, 0):
        return before.omitted
    count = inputs.sizes.budget(None).history_count
    if not is_far_beyond(branch, first, before.omitted, count):
        return before.omitted
    kept = {*effects.pinned, *effects.excluded}
    if inputs.config.trim_strategy != "oldest-first":
        kept.add(index.task if index.task >= 0 else first_request(branch, first, effects.excluded))
    low = int(count * inputs.config.trim_to)
    return before.omitted.with_gaps_filled(first, newest_turns(branch, first, before.omitted, low), "1", kept)


def _first_to_read(inputs: PromptInputs, index: PlanIndex, omitted: IndexRanges) -> int:
    """Return where to start reading if no message may be omitted and the newest alone exceed any window."""
    first = index.seen
    if inputs.may_decide or omitted.end > first or len(inputs.branch) - first <= _ALWAYS_READ:
        return first

    def size(one: Message | JsonObject) -> int:
        message = one if isinstance(one, Message) else Message.from_dict(normalize_message(one))
        capped = inputs.config.max_tool_result_tokens if message.role == "tool" else math.inf
        return int(min(inputs.sizes.estimate_and_bound(message)[0], capped))

    return newest_turns_over(inputs.branch, first, size, _MAX_WINDOWS * inputs.window)


def _extrapolate(inputs: PromptInputs, items: Sequence[PromptItem], unseen: int) -> Inferred:
    """Extrapolate the size of messages that were not read from the average of those that were."""
    first = int(opens_with_system(inputs.branch))
    if unseen <= first or not items:
        return NOTHING_INFERRED
    count = unseen - first - sum(index < unseen for index in inputs.pin_effects.excluded)
    tokens, bound = sum(item.tokens for item in items), sum(item.bound for item in items)
    share = count / len(items)
    turns = sum(item.opens_turn for item in items)
    return Inferred(first, unseen, count, int(tokens * share), math.ceil(bound * share), round(turns * share))


def _repair_parts(
    inputs: PromptInputs, index: PlanIndex, parts: Sequence[range], decisions: Decisions
) -> tuple[list[NormalizedMessage], list[int], Repairer]:
    """Repair the new messages in these parts; also return the indexes of those that cannot be sent."""
    fresh, unfit, repairer = list[NormalizedMessage](), list[int](), index.repairer.copy()
    for part in parts:
        if part.start > index.seen:  # the turn before is complete, whatever it was
            repairer = Repairer("assistant", last=part.start - 1)
        new, bad = _repair_part(inputs, part, repairer, decisions)
        fresh, unfit = [*fresh, *new], [*unfit, *bad]
    return fresh, unfit, repairer


def _repair_part(
    inputs: PromptInputs, part: range, repairer: Repairer, before: Decisions
) -> tuple[list[NormalizedMessage], list[int]]:
    """Repair one part of the branch; also return the indexes of messages that cannot be sent."""
    fresh, unfit = list[NormalizedMessage](), list[int]()
    # a message invented to follow an omitted one is meaningless; only if the user excluded everything after a
    # message can it be omitted before its follower is known
    follows_omitted = repairer.last in before.omitted
    # the next request determines what closes the turn before it
    stop = min(part.stop + 1, len(inputs.branch))
    messages, corrected = _read_messages(inputs.branch, range(part.start, stop))
    for one in repairer.walk(messages, part.start, inputs.pin_effects.excluded):
        if one.index == part.stop:
            break
        if one.is_unsendable:
            unfit.append(one.index)
            continue
        if one.index < 0 and not fresh and follows_omitted:
            continue
        is_corrected = one.index in corrected and not one.repair
        named = replace(one, repair=ODD_FIELD) if is_corrected else one
        fresh.append(_excluded_result(named) if one.index in inputs.pin_effects.emptied else named)
    return fresh, unfit


def _resume(inputs: PromptInputs) -> PlanIndex:
    """Return the plan's index if it is still valid; else an empty one."""
    # with rolling off, a plan's decisions are ignored, but the messages it has cached are still valid
    plan = inputs.plan if inputs.config.enabled else inputs.given_plan
    index = plan.index if plan is not None else None
    sizes, branch = inputs.sizes, inputs.branch
    if index is not None and inputs.may_decide and index.unseen:
        index = None
    if index is not None and index.is_valid_for(branch, sizes.model, inputs.config, inputs.pin_effects):
        return index if index.config == inputs.config else _remeasured(inputs, index)
    # some providers refuse an empty system message: it is left out and reported
    is_first, unfit = opens_with_system(branch), () if inputs.system else (0,)
    return PlanIndex(
        inputs.config,
        sizes.model or "",
        inputs.pin_effects,
        int(is_first),
        branch[0] if is_first else None,
        (),
        (),
        Repairer(),
        -1,
        unfit if is_first else (),
    )


def _remeasured(inputs: PromptInputs, index: PlanIndex) -> PlanIndex:
    """Update an index to a new calibration; measured items keep their sizes."""
    again = inputs.sizes.remeasured
    items = tuple(item if item.measured else again(item) for item in index.items)
    return replace(index, config=inputs.config, items=items)


def _decisions_before(inputs: PromptInputs) -> Decisions:
    """Return the plan's decisions, adjusted to the current pins."""
    plan, effects = inputs.plan, inputs.pin_effects
    if plan is None or not inputs.config.enabled:
        return Decisions()
    decisions = plan.decisions.without(effects.pinned | effects.excluded)
    if plan.pins == inputs.pins:
        return decisions
    # a message that is no longer excluded shares the fate of its turn's request
    back = resolve_pins(inputs.branch, plan.pins).excluded - effects.excluded - effects.pinned
    layers = ((one, decisions.omitted.get(request_of(inputs.branch, one))) for one in sorted(back))
    omitted = decisions.omitted.add((index, layer) for index, layer in layers if layer)
    return replace(decisions, omitted=omitted)


def _read_messages(branch: Sequence[Message | JsonObject], part: range) -> tuple[list[Message], set[int]]:
    """Return the messages of a part, and the indexes of those that had to be corrected first."""
    messages, corrected = [], set()
    for index, one in zip(part, branch[part.start : part.stop], strict=True):
        if isinstance(one, Message):
            messages.append(one)
            continue
        valid = normalize_message(one)
        if valid is not one:
            corrected.add(index)
        messages.append(Message.from_dict(valid))
    return messages, corrected


def _excluded_result(normalized: NormalizedMessage) -> NormalizedMessage:
    """Return the placeholder of a result that the user excluded; its call stays."""
    message = replace(normalized.message, content=EXCLUDED_RESULT)
    return replace(normalized, message=message, repair="", excluded=True)


def _system_of(messages: Sequence[Message | JsonObject]) -> Message | None:
    if not messages:
        return None
    first = messages[0]
    message = first if isinstance(first, Message) else Message.from_dict(first)
    if message.role != "system" or not message.text.strip():
        return None
    original = message.content
    content = without_blank_text(message, original)
    return message if content is original else replace(message, content=content)
