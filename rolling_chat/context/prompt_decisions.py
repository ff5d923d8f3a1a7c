"""Decide what to omit and shorten: the second stage of building a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rolling_chat.context.notice_writer import NoticeWriter, unsummarized_parts
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem
from rolling_chat.context.prompt_walk import PromptInputs, WalkedBranch
from rolling_chat.context.summary_text import Summary, SystemNotice, max_summary_tokens
from rolling_chat.context.tool_results import first_lines
from rolling_chat.context.trim_order import Trimmer

# How many tokens of messages may be omitted to make room for one token of names.
_MAX_TOKENS_PER_NAME_TOKEN = 2


class Outcome(NamedTuple):
    """The result of planning: decisions, the remaining items of each turn, and the notice about the rest."""

    decisions: Decisions
    turns: list[list[PromptItem]]
    notice: SystemNotice


def decide(inputs: PromptInputs, walked: WalkedBranch) -> Outcome:
    """Make the decisions needed for the prompt to fit; none if it fits already."""
    return _Decider(inputs, walked).run()


class _Decider:
    """The decision process for one prompt."""

    def __init__(self, inputs: PromptInputs, walked: WalkedBranch) -> None:
        self._inputs = inputs
        self._plan_decisions, self._before = walked.before, walked.base
        self._task = walked.index.task
        self._turns = walked.turns
        self._writer = NoticeWriter(inputs, walked)

    def run(self) -> Outcome:
        inputs, before, plan = self._inputs, self._before, self._inputs.plan
        if not inputs.config.enabled:
            return Outcome(before, self._turns, self._writer.notice(before, None))
        active = plan.summary if plan is not None else None
        if inputs.is_settled:
            return Outcome(before, self._turns, self._writer.notice(before, active))
        ready, trimmer = active, self._trimmer(active)
        if inputs.ready is not None and inputs.ready.is_newer_than(active):
            ready = inputs.ready
            if self._is_activated(ready, active):
                active = next(self._shortened_versions(ready))
                trimmer = self._trimmer(active)
        early = (
            plan is not None
            and plan.is_cold
            and self._is_over(trimmer, active, inputs.config.usage_threshold)
        )
        is_trim = early or self._has_unread_omissions or self._is_over(trimmer, active)
        if is_trim:
            trimmer, active = self._trim(ready, early=early)
        turns, decisions = trimmer.turns, _attributed(trimmer.decisions, active)
        decisions = self._writer.with_contents(turns, decisions, active, is_trim=is_trim)
        return Outcome(decisions, turns, self._writer.notice(decisions, active))

    @property
    def _has_unread_omissions(self) -> bool:
        """Whether messages were omitted before they were read."""
        return self._before is not self._plan_decisions

    def _trim(self, ready: Summary | None, *, early: bool) -> tuple[Trimmer, Summary | None]:
        """Trim with the available summary; if nothing else helps, drop it and other parts of the notice."""
        trimmer, summary = self._trim_with_names(ready, early=early)
        for writer in self._writer.shorter_versions():
            if trimmer.fits:
                break
            self._writer = writer
            trimmer, summary = self._trim_with_summary(ready, early=early)
        return trimmer, summary

    def _trim_with_names(self, ready: Summary | None, *, early: bool) -> tuple[Trimmer, Summary | None]:
        """Trim with room reserved for names, unless that would omit far more than the names are worth.

        Calls, pictures and reasoning are omitted whole, however small the excess.
        """
        writer, unreserved = self._writer, self._writer.without_reserved_room()
        trimmer, summary = self._trim_with_summary(ready, early=early)
        if unreserved is None or not trimmer.fits:
            return trimmer, summary
        room = (
            unreserved.budget(self._before, summary).available
            - writer.budget(self._before, summary).available
        )
        if trimmer.unused <= room:
            return trimmer, summary
        self._writer = unreserved
        other, other_summary = self._trim_with_summary(ready, early=early)
        if other.fits and other.size - trimmer.size > _MAX_TOKENS_PER_NAME_TOKEN * room:
            return other, other_summary
        self._writer = writer
        return trimmer, summary

    def _trim_with_summary(self, ready: Summary | None, *, early: bool) -> tuple[Trimmer, Summary | None]:
        """Trim with the writer's notice and as much of the summary as there is room for."""
        for summary in self._shortened_versions(ready):
            trimmer = self._trimmer(summary)
            trimmer.trim(early=early)
            if self._masks_exactly:
                # once an edit is omitted, its file is no longer being edited, and the read of it may go
                trimmer.mask_current_turn()
            if trimmer.fits:
                break
        return trimmer, summary

    def _trimmer(self, summary: Summary | None) -> Trimmer:
        """Return a trimmer for the prompt with `summary`, which replaces the turns that it covers."""
        inputs, before = self._inputs, _attributed(self._before, summary)
        budget = self._writer.budget(before, summary)
        pinned = inputs.pin_effects.pinned
        trimmer = Trimmer(self._turns, budget, inputs.sizes, before, task=self._task, pinned=pinned)
        if summary is not None:
            trimmer.cover(summary)
        if self._masks_exactly:
            trimmer.mask_current_turn()
        return trimmer

    def _is_over(self, trimmer: Trimmer, summary: Summary | None, share: float = 1.0) -> bool:
        """Return whether `share` of the limits is exceeded, without the room kept for a longer notice."""
        if not trimmer.is_over(share):
            return False
        decisions = self._writer.with_lists(trimmer.turns, trimmer.decisions)
        return trimmer.is_over(share, spare=int(share * self._writer.spare(decisions, summary)))

    def _is_activated(self, ready: Summary, active: Summary | None) -> bool:
        """Return whether the available summary becomes active now, as for covering an unreported omission."""
        unsummarized = unsummarized_parts(_attributed(self._before, active), active)
        return (
            self._inputs.takes_summary
            or any(_overlap(part, covered) for part in unsummarized for covered in ready.covered)
            or self._is_fully_omitted(ready)
        )

    def _is_fully_omitted(self, summary: Summary) -> bool:
        """Return whether no message that a summary covers is sent, except those that always are."""
        stays, covered = {*self._inputs.pin_effects.pinned, self._task}, summary.covered
        return not any(
            start <= item.index < stop and item.index not in stays
            for turn in self._turns
            for item in turn
            for start, stop in covered
        )

    def _shortened_versions(self, summary: Summary | None) -> Iterator[Summary | None]:
        """Yield the summary within its limit, then within half of it, then without text."""
        if summary is None:
            yield None
            return
        limit = max_summary_tokens(self._inputs.window)
        for cap in (limit, limit // 2, 0):
            text = first_lines(summary.text, cap, self._inputs.sizes.estimate.count_text)
            yield replace(summary, text=text)

    @property
    def _masks_exactly(self) -> bool:
        config = self._inputs.config
        masking = config.tool_result_masking
        return masking == "exact" or (masking == "auto" and not config.prompt_cache)


def _attributed(decisions: Decisions, summary: Summary | None) -> Decisions:
    """Return the decisions with omissions that `summary` covers attributed to it."""
    if summary is None:
        return decisions
    omitted = decisions.omitted
    for start, stop in summary.covered:
        omitted = omitted.relabeled(start, stop, SUMMARIZED)
    return replace(decisions, omitted=omitted)


def _overlap(part: tuple[int, int, str], covered: tuple[int, int]) -> bool:
    return part[0] < covered[1] and covered[0] < part[1]
