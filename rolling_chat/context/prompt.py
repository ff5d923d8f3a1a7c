"""Build a prompt that fits: the entry point of the pipeline for every request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rolling_chat.context.budget import SMALLEST_RESERVE, smallest_window, with_smaller_reserves
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.errors import ContextOverflowError
from rolling_chat.context.pins import Pins
from rolling_chat.context.plan import ContextPlan
from rolling_chat.context.prompt_assembly import AssembledPrompt, assemble, messages_to_send, next_plan
from rolling_chat.context.prompt_decisions import decide
from rolling_chat.context.prompt_walk import PromptInputs, walk
from rolling_chat.context.report import PromptReport
from rolling_chat.context.report_builder import build_report
from rolling_chat.context.summary_text import Summary
from rolling_chat.context.tokens import Tools
from rolling_chat.messages import JsonObject, Message

# The smallest count of any tokenizer, as a share of our best estimate (o200k for emoji: 0.72).
_MIN_COUNT_SHARE = 0.7


class FinalPrompt(NamedTuple):
    """A request that fits, its report, and the plan to pass to the next call.

    `messages` have the type of the input; `token_count` is the best estimate of messages and tools."""

    messages: list[Any]
    token_count: int
    within_budget: bool
    report: PromptReport
    plan: ContextPlan


def build_final_prompt(
    messages: Sequence[Message] | Sequence[JsonObject],
    config: ContextConfig,
    *,
    tools: Tools = None,
    model: str | None = None,
    plan: ContextPlan | None = None,
    pins: Pins | None = None,
    summary: Summary | None = None,
    take_summary: bool = False,
    memo: CountMemo | None = None,
) -> FinalPrompt:
    """Build one request that fits the model's context window; pure and deterministic.

    `messages` are a whole branch, the system message first, as `Message`s or as OpenAI-format dictionaries.
    The result has the same type, ready for JSON in the second case; unchanged messages are the same objects.
    The decisions of `plan` are kept, and new ones are made only when the prompt no longer fits, so that its
    beginning stays unchanged. `pins` give the indexes of messages that must stay or must not be sent; without
    them, the plan's pins apply. `summary` is the newest one available. It becomes active at a trim, as soon
    as anything it covers was omitted without being in a summary, when nothing it covers is sent any more, or
    at once with `take_summary`; until then the plan's summary is active. With `config.enabled` False nothing
    is omitted: results are capped, what does not fit is refused, and the decisions of `plan` are returned
    unchanged. No messages yield a prompt without messages. If nothing can be omitted, the room for the answer
    shrinks to 512 tokens, then to 256, before the request is refused: see `reduced_reserve` of the report.
    With `unproven_share`, a prompt that may fit is tried once. `memo` caches counts between calls; it saves
    time and changes nothing else.

    Raises ContextOverflowError if the request cannot be made to fit.
    """

    def build(config: ContextConfig) -> FinalPrompt:
        return _build(
            PromptInputs.of(
                messages, config, tools, model, plan,
                pins=pins, summary=summary, takes_summary=take_summary, memo=memo,
            )
        )  # fmt: skip

    try:
        return build(config)
    except ContextOverflowError as error:
        refused = error
    for smaller in _last_resorts(config, refused.report):
        try:
            final = build(smaller)
        except ContextOverflowError as error:
            refused = error
            continue
        report = replace(final.report, reduced_reserve=smaller.reserved_output_tokens)
        return final._replace(report=report)
    raise refused


def _last_resorts(config: ContextConfig, refused: PromptReport) -> Iterator[ContextConfig]:
    """Yield configurations that may still make a refused request fit: a smaller reserve, or one attempt.

    An unknown model may count fewer tokens than others, so everything that may fit is sent to it once.
    """
    if config.enabled or not refused.history:
        yield from with_smaller_reserves(config, refused.window)
    if refused.unproven:
        least = min(config.reserved_output_tokens, SMALLEST_RESERVE)
        share = config.unproven_share * _MIN_COUNT_SHARE
        yield replace(config, reserved_output_tokens=least, safety_margin=0.0, unproven_share=share)


def rebuild_final_prompt(
    messages: Sequence[Message],
    config: ContextConfig,
    *,
    tools: Tools = None,
    model: str | None = None,
    plan: ContextPlan | None = None,
    pins: Pins | None = None,
    memo: CountMemo | None = None,
) -> FinalPrompt:
    """Rebuild the prompt that `plan` was made for, without new decisions, whether or not it fits."""
    inputs = PromptInputs.of(messages, config, tools, model, plan, pins=pins, is_settled=True, memo=memo)
    return _build(inputs)


def _build(inputs: PromptInputs) -> FinalPrompt:
    """Walk the branch, decide, assemble; refuse a prompt that does not fit."""
    walked = walk(inputs)
    assembled = assemble(inputs, walked, decide(inputs, walked))
    report = build_report(assembled, inputs.sizes)
    if not report.within_budget and not inputs.is_settled:
        plan = inputs.given_plan if inputs.config.enabled else next_plan(inputs, walked, assembled)
        raise _overflow(inputs, assembled, report, plan)
    plan = next_plan(inputs, walked, assembled)
    return FinalPrompt(messages_to_send(assembled), report.token_count, True, report, plan)


def _overflow(
    inputs: PromptInputs, assembled: AssembledPrompt, report: PromptReport, plan: ContextPlan | None
) -> ContextOverflowError:
    budget = inputs.sizes.budget(assembled.system)
    parts = sorted(assembled.parts(budget).items(), key=lambda part: -part[1])
    return ContextOverflowError(
        current=report.tested,
        maximum=budget.room,
        largest=[(name, tokens) for name, tokens in parts[:3] if tokens],
        smallest_window=smallest_window(inputs.config, report.tested),
        report=report,
        plan=plan,
    )
