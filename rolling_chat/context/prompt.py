"""build_final_prompt: the only door to a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rolling_chat.context.assembled import AssembledPrompt
from rolling_chat.context.budget import smallest_window
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.errors import ContextOverflowError
from rolling_chat.context.pins import EXCLUDED_RESULT, Pins, request_of, resolve_pins
from rolling_chat.context.plan import ContextPlan, PlanIndex, SentPrompt, fingerprint
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem, Sizes
from rolling_chat.context.repair import ODD_FIELD, NormalizedMessage, Repairer, said_content
from rolling_chat.context.report import Fate, PromptReport
from rolling_chat.context.report_builder import draw_report
from rolling_chat.context.summary import Summary, at_turn_end, max_summary_tokens
from rolling_chat.context.surviving import surviving_of, without_their_call
from rolling_chat.context.system_notice import SystemNotice
from rolling_chat.context.tokens import TURN
from rolling_chat.context.tool_results import first_lines
from rolling_chat.context.trim_order import Trimmer
from rolling_chat.context.turns import opens_with_system
from rolling_chat.message_validation import normalize_message
from rolling_chat.messages import Json, JsonObject, Message


class FinalPrompt(NamedTuple):
    """A request that fits: `messages` are of the kind that was given, `token_count` the best estimate
    of messages and tools in tokens, `plan` the decisions to give to the next call."""

    messages: list[Any]
    token_count: int
    within_budget: bool
    report: PromptReport
    plan: ContextPlan


def build_final_prompt(
    messages: Sequence[Message] | Sequence[JsonObject],
    config: ContextConfig,
    *,
    tools: Sequence[JsonObject] | None = None,
    model: str | None = None,
    plan: ContextPlan | None = None,
    pins: Pins | None = None,
    summary: Summary | None = None,
    take_summary: bool = False,
) -> FinalPrompt:
    """Plan one request so that it fits: pure, deterministic, and the only way to a prompt.

    `messages` are a whole branch, the system message first, as `Message`s or as OpenAI-format
    dictionaries; what comes back is of the same kind, ready for JSON in the second case, and a
    message that was not changed is as it was given. Decisions of `plan` are kept, and more are taken
    only when the prompt no longer fits, so that the prefix stands still. `pins` are indexes in `messages`
    that stay or are not sent; without them those of the plan hold. `summary` is the newest there is: it
    comes in at a trim, as soon as anything that it covers has left and no summary tells of it, when nothing
    that it covers is sent, or with `take_summary` at once; until then the plan's is active. With
    `config.enabled` False nothing leaves: results are capped, what does not fit is refused, and `plan` comes
    back as it was. No messages make a prompt without messages.
    Raises ContextOverflowError when the request cannot be made to fit.
    """
    return _Build(
        messages, config, tools, model, plan=plan, pins=pins, summary=summary, take=take_summary
    ).run()


class _Outcome(NamedTuple):
    """What was decided: the decisions, what is left of every turn, what is said of the rest."""

    decisions: Decisions
    turns: list[list[PromptItem]]
    notice: SystemNotice


def rebuild_final_prompt(
    messages: Sequence[Message],
    config: ContextConfig,
    *,
    tools: Sequence[JsonObject] | None = None,
    model: str | None = None,
    plan: ContextPlan | None = None,
) -> FinalPrompt:
    """The prompt that `plan` was taken for: its decisions and no other, whatever was learned since."""
    return _Build(messages, config, tools, model, plan=plan, pins=None, summary=None, is_settled=True).run()


class _Build:
    """One call of build_final_prompt; its steps in the order in which they are taken."""

    def __init__(
        self,
        messages: Sequence[Message] | Sequence[JsonObject],
        config: ContextConfig,
        tools: Sequence[JsonObject] | None,
        model: str | None,
        *,
        plan: ContextPlan | None,
        pins: Pins | None,
        summary: Summary | None,
        take: bool = False,
        is_settled: bool = False,
    ) -> None:
        self._is_settled = is_settled
        self._given: Sequence[Message | JsonObject] = messages
        self._config = config
        known = plan or ContextPlan()
        self._sizes = Sizes.of(config, model, tools, known.confirmed, known.measured)
        self._window = self._sizes.budget(None).window
        self._laid_aside = plan
        self._plan = plan if plan is not None and plan.fits(messages, model, self._window) else None
        self._pins = pins if pins is not None else (plan.pins if plan is not None else Pins())
        self._pin_effects = resolve_pins(messages, self._pins)
        self._ready = at_turn_end(summary, messages) if summary is not None else None
        self._takes_summary = take
        self._system = _system_of(messages)
        self._index = self._resume()

    def run(self) -> FinalPrompt:
        before = self._decisions_before()
        items, closing = self._walk(before)
        outcome = self._decide(_turns([*items, *closing]), before)
        turns = outcome.turns
        if turns and _is_answered(turns[-1]):
            # nothing runs: to the request that comes next, all that was said is history
            turns = [*turns, []]
        assembled = AssembledPrompt(
            given=self._given,
            system=outcome.notice.added_to(self._system),
            history=[item for turn in turns[:-1] for item in turn],
            current=turns[-1] if turns else [],
            decisions=outcome.decisions,
            before=before,
            unfit=tuple(index for index in self._index.unfit if index not in outcome.decisions.omitted),
            pin_effects=self._pin_effects,
            summary=outcome.notice.summary,
        )
        report = draw_report(assembled, self._sizes)
        if not report.within_budget and not self._is_settled:
            plan = self._laid_aside if self._config.enabled else self._next_plan(assembled, closing)
            raise self._overflow(report, assembled, plan)
        sent = [self._system_as_given(assembled.system)] if assembled.system else []
        sent += [self._as_given(item) for item in assembled.items]
        return FinalPrompt(sent, report.token_count, True, report, self._next_plan(assembled, closing))

    def _resume(self) -> PlanIndex:
        """What the plan has seen already, where it is still so; else nothing."""
        # with rolling off a plan's decisions are laid aside, and what it has seen is as good as ever
        plan = self._plan if self._config.enabled else self._laid_aside
        index = plan.index if plan is not None else None
        if index is not None and index.holds(self._given, self._sizes.model, self._config, self._pin_effects):
            return index if index.config == self._config else self._measured_anew(index)
        # a system message that says nothing is refused by some: it is left out and reported
        is_first, unfit = opens_with_system(self._given), () if self._system else (0,)
        return PlanIndex(
            self._config,
            self._sizes.model or "",
            self._pin_effects,
            int(is_first),
            self._given[0] if is_first else None,
            (),
            (),
            Repairer(),
            -1,
            unfit if is_first else (),
        )

    def _decisions_before(self) -> Decisions:
        """Those of the plan, as far as the pins of today leave them."""
        plan = self._plan
        if plan is None or not self._config.enabled:
            return Decisions()
        decisions = plan.decisions.without(self._pin_effects.pinned | self._pin_effects.excluded)
        if plan.pins == self._pins:
            return decisions
        # what is no longer excluded goes where the request of its turn went
        back = (
            resolve_pins(self._given, plan.pins).excluded
            - self._pin_effects.excluded
            - self._pin_effects.pinned
        )
        layers = ((index, decisions.omitted.get(request_of(self._given, index))) for index in sorted(back))
        omitted = decisions.omitted.add((index, layer) for index, layer in layers if layer)
        return replace(decisions, omitted=omitted)

    def _measured_anew(self, index: PlanIndex) -> PlanIndex:
        """The index after replies have taught more: what was measured stays as large as it is."""
        again = self._sizes.measure_again
        items = tuple(item if item.measured else again(item) for item in index.items)
        return replace(index, config=self._config, items=items)

    def _walk(self, decisions: Decisions) -> tuple[list[PromptItem], list[PromptItem]]:
        """The items of the branch, and those that only close it; looks at nothing that was seen before."""
        index, omitted = self._index, decisions.omitted
        repairer, task, unfit = index.repairer.copy(), index.task, list(index.unfit)
        fresh: list[NormalizedMessage] = []
        # what is invented for a message that has left says nothing: only the user's excluding all that
        # came after it can let a message leave before that is known
        stands_on = index.repairer.last
        messages, odd = self._messages_from(index.seen)
        for repaired in repairer.walk(messages, index.seen, self._pin_effects.excluded):
            if repaired.is_unsendable:
                unfit.append(repaired.index)
                continue
            if repaired.index < 0 and not fresh and stands_on in omitted:
                continue
            normalized = repaired
            if repaired.index in odd and not repaired.repair:
                normalized = replace(repaired, repair=ODD_FIELD)
            if task < 0 and normalized.opens_turn:
                task = normalized.index
            fresh.append(
                _emptied(normalized) if normalized.index in self._pin_effects.emptied else normalized
            )
        # what follows what the plan has seen was never omitted, and may begin amid a turn
        kept = fresh if omitted.end <= index.seen else list(surviving_of(fresh, omitted))
        if kept is not fresh:
            unfit += without_their_call(fresh, kept, omitted)
        self._index = replace(index, repairer=repairer.copy(), task=task, unfit=tuple(unfit))
        shape = self._sizes.shape
        items = [*index.items, *(shape(normalized, decisions) for normalized in kept)]
        closing = repairer.finish() if self._given and repairer.last not in omitted else ()
        return items, [shape(normalized, decisions) for normalized in closing]

    def _messages_from(self, first: int) -> tuple[list[Message], set[int]]:
        """The messages from `first` on, and the indexes of those that cannot go out as they were given."""
        messages, odd = [], set()
        for index, given in enumerate(self._given[first:], first):
            if isinstance(given, Message):
                messages.append(given)
                continue
            sound = normalize_message(given)
            if sound is not given:
                odd.add(index)
            messages.append(Message.from_dict(sound))
        return messages, odd

    def _decide(self, turns: list[list[PromptItem]], before: Decisions) -> _Outcome:
        """What leaves so that the prompt fits, and what is left of every turn."""
        if not self._config.enabled:
            return _Outcome(before, turns, self._notice(before, None))
        active = self._plan.summary if self._plan is not None else None
        if self._is_settled:
            return _Outcome(before, turns, self._notice(before, active))
        is_newer = self._ready is not None and self._ready.is_newer_than(active)
        ready = self._ready if is_newer else active
        trimmer = self._trimmer(turns, before, active)
        if is_newer and ready is not None and self._comes_in(ready, turns, before, active):
            active = next(self._shorter(ready))
            trimmer = self._trimmer(turns, before, active)
        is_cold = self._plan is not None and self._plan.is_cold
        early = is_cold and trimmer.is_over(self._config.usage_threshold)
        if early or self._is_over(trimmer, active):
            # a trim: what is ready comes in; where nothing else helps, the summary gives way as well
            for summary in self._shorter(ready):
                trimmer, active = self._trimmer(turns, before, summary), summary
                trimmer.trim(early=early)
                if trimmer.fits:
                    break
        decisions = _relabeled(trimmer.decisions, active)
        return _Outcome(decisions, trimmer.turns, self._notice(decisions, active))

    def _trimmer(self, turns: list[list[PromptItem]], before: Decisions, summary: Summary | None) -> Trimmer:
        """The trim order under `summary`, which stands for the turns that it covers."""
        before = _relabeled(before, summary)
        longest = self._notice(before, summary).at_its_longest()
        budget = self._sizes.budget(longest.added_to(self._system))
        trimmer = Trimmer(
            turns, budget, self._sizes, before, task=self._index.task, pinned=self._pin_effects.pinned
        )
        if summary is not None:
            trimmer.cover(summary.through)
        if self._masks_exactly:
            trimmer.mask_current_turn()
        return trimmer

    def _is_over(self, trimmer: Trimmer, summary: Summary | None) -> bool:
        """Must something leave? Only what is decided then needs room for a notice that may become longer."""
        if not trimmer.is_over():
            return False
        notice = self._notice(trimmer.decisions, summary)
        now, longest = (
            self._sizes.budget(said.added_to(self._system)).available
            for said in (notice, notice.at_its_longest())
        )
        return trimmer.is_over(spare=now - longest)

    def _comes_in(
        self, ready: Summary, turns: list[list[PromptItem]], before: Decisions, active: Summary | None
    ) -> bool:
        """Is a summary that is ready active at once? As soon as it tells of anything that left untold."""
        untold = _untold(_relabeled(before, active), active)
        return (
            self._takes_summary
            or any(start <= ready.through for start, _, _ in untold)
            or self._has_left(turns, ready.through)
        )

    def _has_left(self, turns: list[list[PromptItem]], through: int) -> bool:
        """Is nothing sent of what a summary covers, but for what stays in any case?"""
        stays = {*self._pin_effects.pinned, self._index.task}
        return not any(
            0 <= item.index <= through and item.index not in stays for turn in turns for item in turn
        )

    def _shorter(self, summary: Summary | None) -> Iterator[Summary | None]:
        """The summary within its limit, then half of it, then nothing of it."""
        if summary is None:
            yield None
            return
        limit = max_summary_tokens(self._window)
        for cap in (limit, limit // 2, 0):
            yield replace(summary, text=first_lines(summary.text, cap, self._sizes.estimate.count_text))

    def _notice(self, decisions: Decisions, summary: Summary | None) -> SystemNotice:
        unsaid = _untold(decisions, summary)
        if not unsaid:
            return SystemNotice(summary=summary, recall=self._config.recall)
        count = sum(stop - start for start, stop, _ in unsaid)
        return SystemNotice(count, unsaid[0][0], unsaid[-1][1] - 1, summary, self._config.recall)

    @property
    def _masks_exactly(self) -> bool:
        masking = self._config.tool_result_masking
        return masking == "exact" or (masking == "auto" and not self._config.prompt_cache)

    def _next_plan(self, assembled: AssembledPrompt, closing: Sequence[PromptItem]) -> ContextPlan:
        sizes, confirmed = self._sizes, self._sizes.confirmed
        fixed, estimate = sizes.fixed(assembled.system), sizes.fixed_estimate(assembled.system)
        sent = SentPrompt(sizes.model or "", tuple(assembled.items), fixed.system + fixed.tools, estimate)
        index = self._next_index(assembled, closing)
        if not self._config.enabled:
            aside = self._laid_aside or ContextPlan()
            return replace(
                aside,
                pins=self._pins,
                confirmed=confirmed,
                measured=sizes.measured,
                sent=sent,
                index=index,
            )
        return ContextPlan(
            model=self._sizes.model or "",
            window=self._window,
            seen=len(self._given),
            fingerprint=fingerprint(self._given[-1]) if self._given else "",
            decisions=assembled.decisions,
            pins=self._pins,
            summary=assembled.summary,
            confirmed=confirmed,
            measured=sizes.measured,
            sent=sent,
            index=index,
        )

    def _next_index(self, assembled: AssembledPrompt, closing: Sequence[PromptItem]) -> PlanIndex:
        last = {id(item) for item in closing}
        items = tuple(item for item in assembled.items if id(item) not in last)
        return replace(
            self._index,
            pin_effects=self._pin_effects,
            seen=len(self._given),
            last=self._given[-1] if self._given else None,
            items=items,
            given=tuple(self._given[item.index] for item in items if item.index >= 0),
        )

    def _system_as_given(self, system: Message) -> Message | dict[str, Json]:
        return system if self._given and isinstance(self._given[0], Message) else system.to_dict()

    def _as_given(self, item: PromptItem) -> Message | dict[str, Json]:
        """The message as it goes out: what was given itself, where nothing was changed."""
        if self._given and isinstance(self._given[0], Message):
            return item.message
        given = self._given[item.index] if item.index >= 0 else None
        sent = given if isinstance(given, Mapping) and item.fate is Fate.SENT else item.message.to_dict()
        return {key: value for key, value in sent.items() if key != TURN}

    def _overflow(
        self, report: PromptReport, assembled: AssembledPrompt, plan: ContextPlan | None
    ) -> ContextOverflowError:
        budget = self._sizes.budget(assembled.system)
        parts = sorted(assembled.parts(budget).items(), key=lambda part: -part[1])
        return ContextOverflowError(
            current=report.bound,
            maximum=budget.room,
            largest=[(name, tokens) for name, tokens in parts[:3] if tokens],
            smallest_window=smallest_window(self._config, report.bound),
            report=report,
            plan=plan,
        )


def _untold(decisions: Decisions, summary: Summary | None) -> list[tuple[int, int, str]]:
    """The parts of the branch that left and that `summary` does not stand for."""
    is_told = summary is not None and bool(summary.text)
    return [part for part in decisions.omitted.parts if not (is_told and part[2] == SUMMARIZED)]


def _relabeled(decisions: Decisions, summary: Summary | None) -> Decisions:
    """The same decisions, where what `summary` covers has left for its sake."""
    if summary is None:
        return decisions
    return replace(decisions, omitted=decisions.omitted.relabeled(summary.through + 1, SUMMARIZED))


def _emptied(normalized: NormalizedMessage) -> NormalizedMessage:
    """A result that the user excluded: its call stays, and what came of it is not sent."""
    message = replace(normalized.message, content=EXCLUDED_RESULT, counts={})
    return replace(normalized, message=message, repair="", excluded=True)


def _system_of(messages: Sequence[Message | JsonObject]) -> Message | None:
    if not messages:
        return None
    first = messages[0]
    message = first if isinstance(first, Message) else Message.from_dict(first)
    if message.role != "system" or not message.text.strip():
        return None
    given = message.content
    content = said_content(message, given)
    return message if content is given else replace(message, content=content, counts={})


def _turns(items: Sequence[PromptItem]) -> list[list[PromptItem]]:
    turns: list[list[PromptItem]] = []
    for item in items:
        if not turns or item.opens_turn:
            turns.append([])
        turns[-1].append(item)
    return turns


def _is_answered(turn: Sequence[PromptItem]) -> bool:
    last = turn[-1].message if turn else None
    return last is not None and last.role == "assistant" and not last.tool_calls
