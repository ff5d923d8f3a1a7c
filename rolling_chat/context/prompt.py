"""build_final_prompt: the only door to a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rolling_chat.context.budget import smallest_window
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.errors import ContextOverflowError
from rolling_chat.context.pins import Pins
from rolling_chat.context.plan import ContextPlan
from rolling_chat.context.prompt_assembly import AssembledPrompt, assemble, messages_to_send, next_plan
from rolling_chat.context.prompt_decisions import decide
from rolling_chat.context.prompt_walk import PromptInputs, walk
from rolling_chat.context.report import PromptReport
from rolling_chat.context.report_builder import draw_report
from rolling_chat.context.summary_text import Summary
from rolling_chat.messages import JsonObject, Message


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
    inputs = PromptInputs.of(
        messages, config, tools, model, plan, pins=pins, summary=summary, takes_summary=take_summary
    )
    return _build(inputs)


def rebuild_final_prompt(
    messages: Sequence[Message],
    config: ContextConfig,
    *,
    tools: Sequence[JsonObject] | None = None,
    model: str | None = None,
    plan: ContextPlan | None = None,
) -> FinalPrompt:
    """The prompt that `plan` was taken for: its decisions and no other, whatever was learned since."""
    return _build(PromptInputs.of(messages, config, tools, model, plan, is_settled=True))


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
        current=report.bound,
        maximum=budget.room,
        largest=[(name, tokens) for name, tokens in parts[:3] if tokens],
        smallest_window=smallest_window(inputs.config, report.bound),
        report=report,
        plan=plan,
    )
