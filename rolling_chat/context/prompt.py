"""build_final_prompt: the only door to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from rolling_chat.context.config import ContextConfig, Truncation
from rolling_chat.context.draft import Draft, Sizes
from rolling_chat.context.errors import ContextOverflowError
from rolling_chat.context.ladder import Decisions, Ladder, Measured
from rolling_chat.context.plan import ContextPlan, fingerprint
from rolling_chat.context.report import PromptReport
from rolling_chat.context.reporting import draw_report
from rolling_chat.context.tool_results import shorten_result
from rolling_chat.context.turns import Entry, entry_turns, mend
from rolling_chat.messages import Json, JsonObject, Message

# A level is a share of the window and covers a result's framing; its text gets the rest.
_RESULT_FRAMING = 8
# While the ladder decides, the notice is taken to be as long as it can become.
_NOTICE_ROOM = 999_999


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
) -> FinalPrompt:
    """Plan one request so that it fits: pure, deterministic, and the only way to a prompt.

    `messages` are a whole branch, the system message first, as `Message`s or as OpenAI-format
    dictionaries; what comes back is of the same kind, ready for JSON in the second case, and a
    message that was not changed is as it was given. Decisions of `plan` are kept, and more are taken
    only when the prompt no longer fits, so that the prefix stands still. With `config.enabled` False
    nothing leaves: results are capped, what does not fit is refused, and `plan` comes back as it was.
    Raises ContextOverflowError when the request cannot be made to fit.
    """
    return _Build(messages, config, tools, model, plan).run()


class _Build:
    """One call of build_final_prompt; its steps in the order in which they are taken."""

    def __init__(
        self,
        messages: Sequence[Message] | Sequence[JsonObject],
        config: ContextConfig,
        tools: Sequence[JsonObject] | None,
        model: str | None,
        plan: ContextPlan | None,
    ) -> None:
        self._given = messages
        self._config = config
        self._sizes = Sizes.of(config, model, tools)
        self._messages = [m if isinstance(m, Message) else Message.from_dict(m) for m in messages]
        self._window = self._sizes.budget(None).window
        self._plan = plan

    def run(self) -> FinalPrompt:
        draft = self._draft()
        report = draw_report(draft, self._sizes)
        if not report.within_budget:
            raise self._overflow(report, draft)
        sent = [Entry(0, draft.system)] if draft.system else []
        sent += [item.entry for item in draft.kept]
        messages = [self._as_given(entry) for entry in sent]
        return FinalPrompt(messages, report.token_count, True, report, self._next_plan(draft.decisions))

    def _draft(self) -> Draft:
        system = self._messages[0] if self._messages and self._messages[0].role == "system" else None
        first = 1 if system else 0
        entries, unanswering = mend(self._messages[first:], first)
        decisions = self._known()
        measured = [self._sizes.measure(self._level(self._cap(entry), decisions)) for entry in entries]
        if self._config.enabled:
            budget = self._sizes.budget(_with_notice(system, _NOTICE_ROOM))
            decisions = Ladder(_turns(measured), budget, self._config, decisions).descend()
            measured = [self._relevel(item, decisions) for item in measured]
        turns = [_kept(turn, decisions) for turn in _turns(measured)]
        if turns and _is_answered(turns[-1]):
            # nothing runs: to the request that comes next, all that was said is history
            turns.append([])
        return Draft(
            sources=self._messages,
            system=_with_notice(system, len(decisions.omitted)),
            history=[item for turn in turns[:-1] for item in turn],
            current=turns[-1] if turns else [],
            measured=measured,
            decisions=decisions,
            unanswering=unanswering,
        )

    def _known(self) -> Decisions:
        """The decisions of the plan given, where it holds and rolling is on."""
        plan = self._plan
        if plan is None or not self._config.enabled:
            return Decisions()
        if not plan.fits(self._messages, self._sizes.model, self._window):
            return Decisions()
        return Decisions(dict(plan.omitted), dict(plan.levels))

    def _next_plan(self, decisions: Decisions) -> ContextPlan:
        if not self._config.enabled:
            return self._plan or ContextPlan()
        return ContextPlan(
            model=self._sizes.model or "",
            window=self._window,
            seen=len(self._messages),
            fingerprint=fingerprint(self._messages[-1]) if self._messages else "",
            omitted=MappingProxyType(decisions.omitted),
            levels=MappingProxyType(decisions.levels),
        )

    def _style(self, message: Message) -> Truncation:
        return self._config.tools.get(message.name or "", self._config.tool_result_truncation)

    def _cap(self, entry: Entry) -> Entry:
        """Layer 3a: a result never takes more than its cap, rolling or not."""
        if entry.message.role != "tool":
            return entry
        cap = self._config.max_tool_result_tokens
        count = self._sizes.estimate.count_text
        return _replaced(entry, shorten_result(entry.message, cap, self._style(entry.message), count))

    def _level(self, entry: Entry, decisions: Decisions) -> Entry:
        cap = decisions.levels.get(entry.index)
        if cap is None:
            return entry
        source = self._messages[entry.index]
        shorter = shorten_result(
            source, cap - _RESULT_FRAMING, self._style(source), self._sizes.bound.bound_text
        )
        return _replaced(entry, shorter)

    def _relevel(self, item: Measured, decisions: Decisions) -> Measured:
        levelled = self._level(item.entry, decisions)
        return item if levelled is item.entry else self._sizes.measure(levelled)

    def _as_given(self, entry: Entry) -> Message | dict[str, Json]:
        """The message as it goes out: what was given itself, where nothing was changed."""
        if isinstance(self._given[0], Message):
            return entry.message
        source = self._given[entry.index] if entry.index >= 0 else None
        if isinstance(source, Mapping) and entry.message is self._messages[entry.index]:
            return dict(source)
        return entry.message.to_dict()

    def _overflow(self, report: PromptReport, draft: Draft) -> ContextOverflowError:
        budget = self._sizes.budget(draft.system)
        parts = sorted(draft.parts(budget).items(), key=lambda part: -part[1])
        return ContextOverflowError(
            current=report.bound,
            maximum=budget.room,
            largest=[(name, tokens) for name, tokens in parts[:3] if tokens],
            smallest_window=_smallest_window(report.bound, self._config),
            report=report,
        )


def _with_notice(system: Message | None, omitted: int) -> Message | None:
    """The system message with the line that says how much is missing, after the instructions."""
    if not omitted:
        return system
    notice = f"[conversation truncated — {omitted} older messages omitted]"
    if system is None:
        return Message("system", notice)
    if not isinstance(system.content, str):
        return replace(system, content=(*system.content, {"type": "text", "text": notice}), counts={})
    content = f"{system.content}\n\n{notice}" if system.content else notice
    return replace(system, content=content, counts={})


def _replaced(entry: Entry, message: Message) -> Entry:
    return entry if message is entry.message else replace(entry, message=message)


def _turns(measured: Sequence[Measured]) -> list[list[Measured]]:
    by_entry = {id(item.entry): item for item in measured}
    return [
        [by_entry[id(entry)] for entry in turn] for turn in entry_turns([item.entry for item in measured])
    ]


def _is_answered(turn: Sequence[Measured]) -> bool:
    last = turn[-1].entry.message if turn else None
    return last is not None and last.role == "assistant" and not last.tool_calls


def _kept(turn: Sequence[Measured], decisions: Decisions) -> list[Measured]:
    """What is left of a turn; an invented result leaves with its call."""
    kept: list[Measured] = []
    open_calls: set[str] = set()
    for item in turn:
        if item.entry.index in decisions.omitted:
            continue
        message = item.entry.message
        if message.role != "tool":
            open_calls = {call.id for call in message.tool_calls}
        elif item.entry.index < 0 and message.tool_call_id not in open_calls:
            continue
        kept.append(item)
    return kept


def _smallest_window(bound: int, config: ContextConfig) -> int:
    """The least W with W - R(W) - M(W) >= bound, in tokens."""

    def fits(window: int) -> bool:
        reserve = min(config.reserved_output_tokens, window // 3)
        return window - reserve - int(window * config.safety_margin) >= bound

    low, high = bound, bound * 2 + config.reserved_output_tokens + 16
    while not fits(high):
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
