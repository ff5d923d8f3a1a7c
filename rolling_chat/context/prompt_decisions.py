"""Decide what is omitted and shortened: the second stage of a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem
from rolling_chat.context.prompt_walk import PromptInputs, Walked
from rolling_chat.context.summary_text import Summary, SystemNotice, max_summary_tokens
from rolling_chat.context.tool_results import first_lines
from rolling_chat.context.trim_order import Trimmer
from rolling_chat.messages import Message
from rolling_chat.todo_list import list_of

_MIN_TODO = 64  # tokens that a to-do list may take in a small window


class Outcome(NamedTuple):
    """The result of planning: the decisions, what stays of each turn, and the notice about the rest."""

    decisions: Decisions
    turns: list[list[PromptItem]]
    notice: SystemNotice


def decide(inputs: PromptInputs, walked: Walked) -> Outcome:
    """Take the decisions that make the prompt fit; none if it fits already."""
    return _Deciding(inputs, walked).run()


class _Deciding:
    """The decisions of one prompt."""

    def __init__(self, inputs: PromptInputs, walked: Walked) -> None:
        self._inputs = inputs
        self._given_decisions, self._before = walked.before, walked.base
        self._task = walked.index.task
        self._todo = walked.index.todo
        self._tells_todo = True
        self._turns = walked.turns

    def run(self) -> Outcome:
        inputs, before, plan = self._inputs, self._before, self._inputs.plan
        if not inputs.config.enabled:
            return Outcome(before, self._turns, self._notice(before, None))
        active = plan.summary if plan is not None else None
        if inputs.is_settled:
            return Outcome(before, self._turns, self._notice(before, active))
        ready, trimmer = active, self._trimmer(active)
        if inputs.ready is not None and inputs.ready.is_newer_than(active):
            ready = inputs.ready
            if self._comes_in(ready, active):
                active = next(self._shorter(ready))
                trimmer = self._trimmer(active)
        early = plan is not None and plan.is_cold and trimmer.is_over(inputs.config.usage_threshold)
        if early or self._has_omitted or self._is_over(trimmer, active):
            trimmer, active = self._trim(ready, early=early)
        decisions = self._carrying(_relabeled(trimmer.decisions, active))
        return Outcome(decisions, trimmer.turns, self._notice(decisions, active))

    @property
    def _has_omitted(self) -> bool:
        """Has anything been omitted before it was looked at?"""
        return self._before is not self._given_decisions

    def _trim(self, ready: Summary | None, *, early: bool) -> tuple[Trimmer, Summary | None]:
        """Trim with the summary that is ready; if nothing else helps, it and the to-do list give way."""
        for summary in self._shorter(ready):
            trimmer = self._trimmer(summary)
            trimmer.trim(early=early)
            if trimmer.fits:
                return trimmer, summary
        if self._todo >= 0:
            self._tells_todo = False
            trimmer = self._trimmer(summary)
            trimmer.trim(early=early)
        return trimmer, summary

    def _trimmer(self, summary: Summary | None) -> Trimmer:
        """A trimmer under `summary`, which stands for the turns that it covers."""
        inputs, before = self._inputs, _relabeled(self._before, summary)
        longest = self._longest(self._notice(before, summary))
        budget = inputs.sizes.budget(longest.added_to(inputs.system))
        pinned = inputs.pin_effects.pinned
        trimmer = Trimmer(self._turns, budget, inputs.sizes, before, task=self._task, pinned=pinned)
        if summary is not None:
            trimmer.cover(summary)
        if self._masks_exactly:
            trimmer.mask_current_turn()
        return trimmer

    def _is_over(self, trimmer: Trimmer, summary: Summary | None) -> bool:
        """Must something be omitted? Only a new decision needs room for a notice that may become longer."""
        if not trimmer.is_over():
            return False
        notice = self._notice(self._carrying(trimmer.decisions), summary)
        now, longest = (
            self._inputs.sizes.budget(said.added_to(self._inputs.system)).available
            for said in (notice, self._longest(notice))
        )
        return trimmer.is_over(spare=now - longest)

    def _comes_in(self, ready: Summary, active: Summary | None) -> bool:
        """Does a summary that is ready become active at once? As soon as it covers an unreported omission."""
        untold = _untold(_relabeled(self._before, active), active)
        return (
            self._inputs.takes_summary
            or any(_overlap(part, covered) for part in untold for covered in ready.covered)
            or self._has_left(ready)
        )

    def _has_left(self, summary: Summary) -> bool:
        """Is nothing sent of what a summary covers, except what stays in any case?"""
        stays, covered = {*self._inputs.pin_effects.pinned, self._task}, summary.covered
        return not any(
            start <= item.index < stop and item.index not in stays
            for turn in self._turns
            for item in turn
            for start, stop in covered
        )

    def _shorter(self, summary: Summary | None) -> Iterator[Summary | None]:
        """The summary within its limit, then half of it, then nothing of it."""
        if summary is None:
            yield None
            return
        limit = max_summary_tokens(self._inputs.window)
        for cap in (limit, limit // 2, 0):
            text = first_lines(summary.text, cap, self._inputs.sizes.estimate.count_text)
            yield replace(summary, text=text)

    def _notice(self, decisions: Decisions, summary: Summary | None) -> SystemNotice:
        recall, unsaid = self._inputs.config.recall, _untold(decisions, summary)
        todo = self._list_at(decisions.carried)
        if not unsaid:
            return SystemNotice(summary=summary, recall=recall, todo=todo)
        count = sum(stop - start for start, stop, _ in unsaid)
        return SystemNotice(count, unsaid[0][0], unsaid[-1][1] - 1, summary, recall, todo)

    def _longest(self, notice: SystemNotice) -> SystemNotice:
        lists = (notice.todo, self._list_at(self._todo))
        return notice.at_its_longest(max(lists, key=self._inputs.sizes.bound.bound_text))

    def _carrying(self, decisions: Decisions) -> Decisions:
        """The decisions with the to-do list that the notice tells from now on.

        It is the newest where its call has left. One that is told already stays, although a newer call is
        sent, until the notice changes anyway: the beginning of the prompt keeps still.
        """
        before = self._given_decisions
        if not self._tells_todo or self._todo < 0:
            return replace(decisions, carried=-1)
        if (decisions.omitted, decisions.arguments) == (before.omitted, before.arguments):
            return replace(decisions, carried=before.carried)
        has_left = self._todo in decisions.omitted or self._todo in decisions.arguments
        is_still = decisions.omitted == before.omitted
        return replace(decisions, carried=self._todo if has_left else before.carried if is_still else -1)

    def _list_at(self, index: int) -> str:
        """The to-do list that the message at an index sets; empty for none."""
        if not self._tells_todo or not 0 <= index < len(self._inputs.given):
            return ""
        given = self._inputs.given[index]
        todo = list_of(given if isinstance(given, Message) else Message.from_dict(given))
        if todo is None:
            return ""
        count, cap = self._inputs.sizes.cutting, max(_MIN_TODO, max_summary_tokens(self._inputs.window) // 2)
        return first_lines(todo.text if count(todo.text) <= cap else todo.open_text, cap, count)

    @property
    def _masks_exactly(self) -> bool:
        config = self._inputs.config
        masking = config.tool_result_masking
        return masking == "exact" or (masking == "auto" and not config.prompt_cache)


def _untold(decisions: Decisions, summary: Summary | None) -> list[tuple[int, int, str]]:
    """The parts of the branch that left and that `summary` does not stand for."""
    is_told = summary is not None and bool(summary.text)
    return [part for part in decisions.omitted.parts if not (is_told and part[2] == SUMMARIZED)]


def _relabeled(decisions: Decisions, summary: Summary | None) -> Decisions:
    """The same decisions, where what `summary` covers has left for its sake."""
    if summary is None:
        return decisions
    omitted = decisions.omitted
    for start, stop in summary.covered:
        omitted = omitted.relabeled(start, stop, SUMMARIZED)
    return replace(decisions, omitted=omitted)


def _overlap(part: tuple[int, int, str], covered: tuple[int, int]) -> bool:
    return part[0] < covered[1] and covered[0] < part[1]
