"""Build a prompt that fits: the only way to a request."""

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
from rolling_chat.context.report_builder import draw_report
from rolling_chat.context.summary_text import Summary
from rolling_chat.context.tokens import Tools
from rolling_chat.messages import JsonObject, Message

# What the least of tokenizers counts of our best estimate (o200k of emoji: 0.72).
_LEAST_SHARE = 0.7


class FinalPrompt(NamedTuple):
    """Hold a request that fits, its report, and the plan to give to the next call.

    `messages` are of the kind that was given; `token_count` is the best estimate of messages and tools."""

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

    `messages` are a whole branch, the system message first, as `Message`s or as OpenAI-format
    dictionaries; the result is of the same kind, ready for JSON in the second case, and a message that
    was not changed is the one given. Decisions of `plan` are kept, and more are taken only when the
    prompt no longer fits, so that its beginning does not change. `pins` name messages by index that stay
    or are not sent; without them those of the plan apply. `summary` is the newest available: it becomes
    active at a trim, as soon as anything that it covers was omitted and is in no summary, when nothing
    that it covers is sent, or with `take_summary` at once; until then the plan's is active. With
    `config.enabled` False nothing is omitted: results are capped, what does not fit is refused, and the
    decisions of `plan` come back unchanged. No messages make a prompt without messages. Before a request is
    refused that nothing can be omitted from, the room for the answer shrinks to 512 tokens, then to 256: see
    `reduced_reserve` of the report; with `unproven_share` a prompt that may fit is tried once.
    `memo` remembers what was counted from call to call: it saves time, and changes nothing else.

    Raises ContextOverflowError when the request cannot be made to fit.
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
    """Yield what may still make a refused request fit: less room for the answer, or a try.

    A model of which nothing is known may count less than others: all that may fit is sent to it once.
    """
    if config.enabled or not refused.history:
        yield from with_smaller_reserves(config, refused.window)
    if refused.unproven:
        least = min(config.reserved_output_tokens, SMALLEST_RESERVE)
        share = config.unproven_share * _LEAST_SHARE
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
    """Rebuild the prompt that `plan` was made for, without any new decision, whether or not it fits."""
    inputs = PromptInputs.of(messages, config, tools, model, plan, pins=pins, is_settled=True, memo=memo)
    return _build(inputs)


def _build(inputs: PromptInputs) -> FinalPrompt:
    """Walk the branch, decide, assemble; refuse what does not fit."""
    walked = walk(inputs)
    assembled = assemble(inputs, walked, decide(inputs, walked))
    report = draw_report(assembled, inputs.sizes)
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
