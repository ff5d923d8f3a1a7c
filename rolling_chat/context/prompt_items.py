"""Prompt items: the messages of a branch in the form in which a prompt sends them, with their sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from rolling_chat.context.budget import Budget, divide_window
from rolling_chat.context.calibration import Calibration, FixedPart
from rolling_chat.context.call_arguments import KEPT_ARGUMENT_TOKENS, shorten_arguments
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.count_memo import CountMemo, CountText
from rolling_chat.context.families import UNKNOWN
from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.measured_sizes import (
    NOTHING_MEASURED,
    Confirmed,
    MeasuredSizes,
    reply_bound,
)
from rolling_chat.context.notice_contents import NO_CONTENTS, NoticeContents
from rolling_chat.context.repair import NormalizedMessage
from rolling_chat.context.report import Fate
from rolling_chat.context.tokens import (
    FamilyEstimator,
    TokenEstimator,
    Tools,
    bounding_estimator,
    count_tools,
    estimator_for,
)
from rolling_chat.context.tool_results import (
    drop_parts,
    has_unknown_parts,
    mask_pictures,
    mask_result,
    other_parts,
    recall_line,
    shorten_result,
)
from rolling_chat.context_keys import Truncation
from rolling_chat.messages import ATTACHED, NOTE, Message, has_pictures

# The layer of messages that a summary replaces.
SUMMARIZED = "summary"
# The default reason why a result is masked.
OLDER = "an older result"
# Tokens that the text of a result with images needs at least: room for the line about the cut.
_MIN_TEXT_TOKENS = 32


# Fields of a message that carry content beyond its text; so may any field whose value is a structure.
_CONTENT_FIELDS = {NOTE, "reasoning", "reasoning_content"}
_STRUCTURES = (Mapping, list, tuple)

# The sent form of a message, its fate, the layer that decided it, and the reason.
_Shaped: TypeAlias = tuple[Message, Fate, str, str]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which messages are omitted, masked or shortened, by index in the branch.

    `omitted` names the layer that omitted each message. `masked` are results, each with the reason;
    `arguments` are calls whose long values are cut. `levels` are the sizes to which a result, a text or a
    call's values are cut, in bound tokens before calibration: what was cut must not be cut again when the
    calibration changes. `todo_index` is the index of the call whose to-do list the notice repeats, -1 for
    none; `notice` is the notice's other content.
    """

    omitted: IndexRanges = field(default_factory=IndexRanges)
    masked: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    arguments: Set[int] = frozenset()
    levels: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    todo_index: int = -1
    notice: NoticeContents = NO_CONTENTS

    def without(self, indexes: Set[int]) -> Decisions:
        """Return the decisions without those about `indexes`."""
        if not indexes:
            return self
        levels = {index: cap for index, cap in self.levels.items() if index not in indexes}
        masked = {index: reason for index, reason in self.masked.items() if index not in indexes}
        return Decisions(
            self.omitted.without(indexes),
            MappingProxyType(masked),
            self.arguments - indexes,
            MappingProxyType(levels),
            self.todo_index,
            self.notice.without(indexes),
        )

    def decides_like(self, other: Decisions) -> bool:
        """Return whether the same is omitted, masked and shortened as in `other`, whatever the notice."""
        return replace(self, notice=other.notice) == other


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One message as a prompt sends it: its content, its size and its fate.

    `normalized` is the message after repair, `message` the form that is sent. `tokens` is the best estimate
    and `bound` the upper bound; both are the model's own count if `measured`.
    """

    normalized: NormalizedMessage
    message: Message
    tokens: int
    bound: int
    fate: Fate
    layer: str = ""
    reason: str = ""
    measured: bool = False
    # the message's index in the branch, -1 if invented; a field because it is read thousands of times a
    # request
    index: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Copy the index from the normalized message."""
        object.__setattr__(self, "index", self.normalized.index)

    @property
    def opens_turn(self) -> bool:
        """Whether a turn begins with this message."""
        return self.normalized.opens_turn

    @property
    def is_whole(self) -> bool:
        """Whether the message is sent whole, neither shortened nor emptied."""
        return self.message is self.normalized.message and not self.normalized.excluded


@dataclass(frozen=True, slots=True)
class FixedSizes:
    """The sizes of system message and tools, which every prompt contains, in tokens.

    Each is a best estimate and an upper bound. The system's size includes what the provider adds to every
    request."""

    system: int
    tools: int
    system_bound: int
    tools_bound: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Measures messages for one model: best estimates for display, upper bounds for the limit.

    `estimate` and `bound` are corrected by the model's reports. The length to which messages are cut follows
    `shaping`, and `cutting`, which counts a text in uncalibrated bound tokens: neither changes with a reply.
    `memo` caches earlier counts.
    """

    config: ContextConfig
    model: str | None
    tools: Tools
    estimate: TokenEstimator
    bound: FamilyEstimator
    plain: FamilyEstimator
    shaping: TokenEstimator
    cutting: CountText
    memo: CountMemo
    confirmed: Confirmed | None = None
    measured: MeasuredSizes = NOTHING_MEASURED

    @property
    def is_unproven(self) -> bool:
        """Whether the best estimate decides, because the tokenizer is unknown and nothing was measured."""
        config = self.config
        if not config.unproven_share or self.plain.family.name != UNKNOWN.name:
            return False
        return self.confirmed is None and config.calibration.knows_nothing

    @property
    def proven(self) -> Sizes:
        """The same sizes with upper bounds, even if the estimate decides."""
        return replace(self, config=replace(self.config, unproven_share=0.0))

    def _deciding_size(self, tokens: int, bound: int) -> int:
        """Return the size that decides whether a prompt fits: the bound, unless the model is unproven."""
        return math.ceil(tokens * self.config.unproven_share) if self.is_unproven else bound

    @classmethod
    def of(
        cls,
        config: ContextConfig,
        model: str | None,
        tools: Tools,
        memo: CountMemo,
        *,
        confirmed: Confirmed | None = None,
        measured: MeasuredSizes = NOTHING_MEASURED,
    ) -> Sizes:
        """Create the sizes for a model under `config`.

        `confirmed` and `measured` are the model's own counts. Raises ValueError for an unknown estimator."""
        choice, calibration = config.token_estimator, config.calibration
        return cls(
            config,
            model,
            tools,
            estimator_for(model, choice, calibration, memo),
            bounding_estimator(model, calibration, memo),
            bounding_estimator(model, memo=memo),
            # these two are part of the cache key of a cut, so they reference no memo
            estimator_for(model, choice, Calibration(estimate=calibration.shape)),
            bounding_estimator(model).bound_text,
            memo,
            confirmed if confirmed is not None and confirmed.model == (model or "") else None,
            measured.of(model or ""),
        )

    def budget(self, system: Message | None) -> Budget:
        """Return the division of the context window with this system message."""
        fixed = self.fixed(system)
        return divide_window(self.config, self.model, system=fixed.system_bound, tools=fixed.tools_bound)

    def fixed(self, system: Message | None) -> FixedSizes:
        """Return the size of system message and tools: the measured one, corrected for later changes."""
        tokens, bound = self.estimate_and_bound(system) if system else (0, 0)
        tools_bound = self.bound.bound_tools(self.tools)
        tools = min(count_tools(self.estimate, self.tools), tools_bound)
        extra = self.plain.family.request_extra
        fixed = FixedSizes(tokens + extra, tools, bound + self.bound.bound_request, tools_bound)
        if self.is_unproven:
            decisive = self._deciding_size(tools, tools_bound)
            return replace(fixed, system_bound=bound + self._deciding_size(extra, 0), tools_bound=decisive)
        estimate, calibration, known = self.fixed_estimate(system), self.config.calibration, self.confirmed
        if known is not None:
            part = FixedPart(known.estimate, known.fixed, known.fixed)
            part = part.resized(estimate, calibration.estimate, self.bound.prior / self.plain.family.factor)
        else:
            learned = calibration.fixed_part(estimate, fixed.system_bound + fixed.tools_bound)
            if learned is None or self.estimate != self.bound:  # a chosen estimator is not corrected
                return fixed
            part = learned
        system_tokens, tools_tokens = _split_in_proportion(part.tokens, fixed.system, fixed.tools)
        return FixedSizes(
            system_tokens,
            tools_tokens,
            *_split_in_proportion(part.upper, fixed.system_bound, fixed.tools_bound),
        )

    def fixed_estimate(self, system: Message | None) -> int:
        """Return the plain estimate of system message and tools."""
        said = self.plain.count_message(system) if system else 0
        return said + self.plain.family.request_extra + count_tools(self.plain, self.tools)

    def measure(self, message: Message, index: int) -> tuple[int, int, bool]:
        """Return the estimate and the upper bound of a message's sent form, and whether both are measured.

        The model's report about its own reply is the best estimate of it. It can raise the bound but not
        lower it: some models report fewer tokens than they count when the reply is sent back to them.
        """
        if (measured := self.measured.find(index, message)) is not None:
            return measured, measured, True
        tokens, bound = self.estimate_and_bound(message)
        reported = self.measured.find_reply(index, message)
        if reported is None:
            return tokens, bound, False
        return reported, bound if reported <= bound else reply_bound(message, reported), False

    def remeasured(self, item: PromptItem) -> PromptItem:
        """Return the item with sizes for the current calibration."""
        tokens, bound, measured = self._measured(item.normalized, item.message)
        return replace(item, tokens=tokens, bound=bound, measured=measured)

    def _measured(self, normalized: NormalizedMessage, message: Message) -> tuple[int, int, bool]:
        is_known = normalized.index >= 0 and not normalized.excluded
        return (
            self.measure(message, normalized.index)
            if is_known
            else (*self.estimate_and_bound(message), False)
        )

    def estimate_and_bound(self, message: Message) -> tuple[int, int]:
        """Return the best estimate of `message`, and its upper bound or the size that decides instead.

        An estimator chosen by name may count more than the bound, so the estimate is capped at the bound.
        """
        bound = self.bound.bound_message(message)
        tokens = min(self.estimate.count_message(message), bound)
        return tokens, self._deciding_size(tokens, bound)

    def uncalibrated(self, bound: int) -> int:
        """Convert bound tokens to uncalibrated ones, the unit in which cuts are stored."""
        share = (
            self.plain.family.factor * self.config.unproven_share if self.is_unproven else self.bound.prior
        )
        return int(bound * self.plain.prior / share)

    def shape(self, normalized: NormalizedMessage, decisions: Decisions) -> PromptItem:
        """Return the prompt item of a message under `decisions`; cap tool results (layer 3a)."""
        message, fate, layer, reason = self._shape_message(normalized, decisions)
        tokens, bound, measured = self._measured(normalized, message)
        return PromptItem(normalized, message, tokens, bound, fate, layer, reason, measured)

    def _shape_message(self, normalized: NormalizedMessage, decisions: Decisions) -> _Shaped:
        message = normalized.message
        shaped = None
        if message.role == "tool" and normalized.index >= 0:
            shaped = self._shape_result(normalized, decisions)
        elif message.tool_calls:
            shaped = self._shape_call(normalized, decisions)
        elif normalized.index in decisions.levels and _is_plain_text(message):
            shaped = self._shape_text(normalized, decisions.levels[normalized.index])
        elif normalized.index in decisions.masked and has_pictures(message):
            tokens = _parts_cost(message, self.shaping)
            masked = mask_pictures(message, tokens, recall=self._recall(normalized))
            return masked, Fate.MASKED, "3b", "an older picture"
        if shaped is not None:
            return shaped
        layer = "repair" if normalized.repair else ""
        if normalized.excluded:
            return message, Fate.EXCLUDED, layer, "excluded by the user"
        return message, Fate.REPAIRED if normalized.repair else Fate.SENT, layer, normalized.repair

    def _shape_result(self, normalized: NormalizedMessage, decisions: Decisions) -> _Shaped | None:
        source, style, recall = normalized.message, self._style(normalized), self._recall(normalized)
        if normalized.index in decisions.masked and not has_unknown_parts(source):
            parts = _parts_cost(source, self.shaping)
            masked = mask_result(source, self.shaping.count_text, self.memo, parts=parts, recall=recall)
            if masked is not source:
                return masked, Fate.MASKED, "3b", decisions.masked[normalized.index]
        cap = self.config.max_tool_result_tokens
        capped = shorten_result(source, cap, style, self.shaping.count_text, self.memo, recall=recall)
        share = decisions.levels.get(normalized.index)
        if share is not None:
            leveled = self._cut_to_share(source, share, style, recall)
            lost_parts = isinstance(leveled.content, str) and not isinstance(source.content, str)
            if lost_parts or len(leveled.text) < len(capped.text):
                return leveled, Fate.SHORTENED, "levelled", "shares the room that is left"
        if capped is not source:
            return capped, Fate.SHORTENED, "3a", f"over the cap of {cap:,} tokens a result"
        return None

    def _cut_to_share(self, source: Message, share: int, style: Truncation, recall: str) -> Message:
        """Cut `source` to `share` bound tokens, including framing and name; its images stay if they fit."""
        others = self.plain.bound_message(replace(source, content=other_parts(source)))
        is_large = others + _MIN_TEXT_TOKENS > share
        if other_parts(source) and is_large and not has_unknown_parts(source):
            source = drop_parts(source, _parts_cost(source, self.shaping), recall)
            others = self.plain.bound_message(replace(source, content=""))
        return shorten_result(source, max(1, share - others), style, self.cutting, self.memo, recall=recall)

    def _shape_call(self, normalized: NormalizedMessage, decisions: Decisions) -> _Shaped | None:
        if normalized.index in decisions.arguments:
            cap = decisions.levels.get(normalized.index, KEPT_ARGUMENT_TOKENS)
            shorter = shorten_arguments(
                normalized.message, cap, self.cutting, self.memo, recall=self._recall(normalized)
            )
            if shorter is not normalized.message:
                return shorter, Fate.SHORTENED, "arguments", "long arguments of a call already answered"
        return None

    def _shape_text(self, normalized: NormalizedMessage, share: int) -> _Shaped | None:
        source = normalized.message
        shorter = self._cut_to_share(source, share, "both", self._recall(normalized))
        if shorter is source:
            return None
        # `ATTACHED` holds positions of files in the whole text, which do not apply to the shortened one
        extras = {key: value for key, value in (source.extras or {}).items() if key != ATTACHED}
        shorter = replace(shorter, extras=extras or None)
        return shorter, Fate.SHORTENED, "2", "cut to the room that is left"

    def _recall(self, normalized: NormalizedMessage) -> str:
        """Return the line that says how to read a shortened message back; empty without a recall tool."""
        return recall_line(normalized.index) if self.config.recall else ""

    def _style(self, normalized: NormalizedMessage) -> Truncation:
        name = normalized.message.name or normalized.tool
        return self.config.tools.get(name, self.config.tool_result_truncation)


def can_be_cut(item: PromptItem | None) -> bool:
    """Return whether an item may be sent in part: a result, or a message that is only text."""
    if item is None or item.index < 0 or item.normalized.excluded or item.fate is Fate.MASKED:
        return False
    return item.message.role == "tool" or _is_plain_text(item.message)


def _is_plain_text(message: Message) -> bool:
    """Return whether this is a request or answer with only text: no calls, pictures or reasoning."""
    is_spoken = message.role in {"user", "assistant"} and not message.tool_calls
    if not is_spoken or not isinstance(message.content, str):
        return False
    others = {key: value for key, value in (message.extras or {}).items() if key != ATTACHED}
    has_more = any(isinstance(value, _STRUCTURES) for value in others.values())
    return not has_more and not others.keys() & _CONTENT_FIELDS


def _split_in_proportion(total: int, system: int, tools: int) -> tuple[int, int]:
    of_tools = total * tools // max(1, system + tools)
    return total - of_tools, of_tools


def _parts_cost(message: Message, estimator: TokenEstimator) -> int:
    """Return the cost of images and other parts that are not text, in tokens."""
    parts = other_parts(message)
    if not parts:
        return 0
    nothing = Message("tool")
    return estimator.count_message(replace(nothing, content=parts)) - estimator.count_message(nothing)
