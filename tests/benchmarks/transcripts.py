"""Every transcript at every window: what fits, what is refused and for what, what is orphaned.

A prompt is built at every point at which a model was called, the plan handed on. `orphans` are prompts
that a provider would refuse, by rules that share no code with the pipeline. Every refusal is checked:
what can never leave is added up here, from the messages as they stand; where that would have fitted,
the request was refused without cause, and where another part of it is larger than the one named, it was
misnamed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    build_final_prompt,
    prompt_bound,
)
from rolling_chat.context.repair import EMPTY_CONTENT
from rolling_chat.messages import Message
from rolling_chat.replay import request_points
from tests.benchmarks.reading import NO_TRANSCRIPTS, conversations, transcript_files
from tests.support.prompt_rules import broken_rules

MODELS = ("gpt-4o", "claude-sonnet-4-5", "acme/unknown-1")
WINDOWS = (4_096, 8_192, 16_384, 32_768, 131_072, 200_000)
# what a result or a call's arguments keep whatever happens: framing, and the line that says so
_LEAST_RESULT = 40
_LEAST_CALL = 200
_NO_FLOOR = {"history", "reserve for the answer"}
_CUT = "[truncated: kept first ~0 of ~99 tokens (head)]"
_NOTICE = "\n\n[conversation truncated — 999999 older messages omitted]"

AnyMessage = dict[str, Any]


@dataclass
class Tally:
    """What the requests of one window and model came to."""

    requests: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    orphans: int = 0
    without_cause: int = 0
    misnamed: int = 0
    examples: list[str] = field(default_factory=list)

    def refuse(self, error: ContextOverflowError, floor: Mapping[str, int], where: str) -> None:
        """Take in a refusal; `floor` is what can never leave, `where` the request."""
        named = next((name for name, _tokens in error.largest if name not in _NO_FLOOR), "nothing")
        self.refused[named] += 1
        least = sum(floor.values())
        if least <= error.maximum:
            self.without_cause += 1
            self.examples.append(f"{where}: {least:,} would have fitted {error.maximum:,}; {error}")
        elif floor.get(named, 0) < max(floor.values()):
            self.misnamed += 1
            self.examples.append(f"{where}: {floor} of {error.maximum:,}; {error}")


def run() -> Iterator[str]:
    """A line a window and model, and the first example of everything that should not be."""
    files = transcript_files()
    if not files:
        yield NO_TRANSCRIPTS
        return
    told = [conversation for path in files for conversation in conversations(path)]
    yield f"{len(told):,} conversations of {len(files)} files"
    yield (
        f"{'model':<18} {'window':>8} {'requests':>9} {'fit':>7} {'refused':>8} {'orphans':>8} "
        f"{'without cause':>14} {'misnamed':>9}  largest part of what was refused"
    )
    for model in MODELS:
        for window in WINDOWS:
            tally = Tally()
            for conversation in told:
                _replay(conversation, model, window, tally)
            yield _line(model, window, tally)
            yield from tally.examples[:3]


def _line(model: str, window: int, tally: Tally) -> str:
    refused = tally.refused.total()
    named = ", ".join(f"{name} {count:,}" for name, count in tally.refused.most_common())
    return (
        f"{model:<18} {window:>8,} {tally.requests:>9,} {tally.requests - refused:>7,} {refused:>8,} "
        f"{tally.orphans:>8,} {tally.without_cause:>14,} {tally.misnamed:>9,}  {named}"
    )


def _replay(conversation: Mapping[str, Any], model: str, window: int, tally: Tally) -> None:
    messages, tools = conversation["messages"], conversation.get("tools")
    config = ContextConfig(max_context_tokens=window)
    plan: ContextPlan | None = None
    for place in request_points([Message.from_dict(message) for message in messages]):
        branch = messages[:place]
        tally.requests += 1
        where = f"    {conversation['id']}, before message {place}"
        try:
            prompt = build_final_prompt(branch, config, tools=tools, model=model, plan=plan)
        except ContextOverflowError as error:
            tally.refuse(error, _floor(branch, tools, model), where)
            continue
        plan = prompt.plan
        if problems := broken_rules(prompt.messages):
            tally.orphans += 1
            tally.examples.append(f"{where}: {problems[0]}")


def _floor(branch: Sequence[AnyMessage], tools: Sequence[AnyMessage] | None, model: str) -> dict[str, int]:
    """What can never leave, as bounds in tokens, by the names that a refusal has for them."""
    empty = prompt_bound([], model=model)

    def bound(message: AnyMessage) -> int:
        return prompt_bound([message], model=model) - empty

    system = branch[0] if branch[0]["role"] == "system" else None
    at = max((at for at, message in enumerate(branch) if message["role"] == "user"), default=-1)
    leavers = len(branch) - (system is not None) - (at >= 0)
    calls_at = max((at for at, message in enumerate(branch) if message.get("tool_calls")), default=-1)
    work = 0
    if calls_at > at and all(message["role"] == "tool" for message in branch[calls_at + 1 :]):
        results = branch[calls_at + 1 :]
        leavers -= 1 + len(results)
        work = min(bound(branch[calls_at]), max(_LEAST_CALL, bound(_without_arguments(branch[calls_at]))))
        # one that says nothing is sent as a few words that say so
        said_by = ({**result, "content": result.get("content") or EMPTY_CONTENT} for result in results)
        work += sum(min(bound(result), _LEAST_RESULT) for result in said_by)
    said = (system["content"] if system else "") + (_NOTICE if leavers else "")
    return {
        "system prompt": empty + (bound({"role": "system", "content": said}) if said else 0),
        "tools": prompt_bound([], tools=tools, model=model) - empty,
        "current message": bound(branch[at]) if at >= 0 else 0,
        "tool work of this turn": work,
    }


def _without_arguments(message: AnyMessage) -> AnyMessage:
    """The message with all cut from its arguments that can be; those that are no object stay."""
    return {**message, "tool_calls": [_bare(call) for call in message["tool_calls"]]}


def _bare(call: AnyMessage) -> AnyMessage:
    try:
        values = json.loads(call["function"]["arguments"])
    except ValueError:
        return call
    if not isinstance(values, dict):
        return call
    arguments = json.dumps(_cut(values), ensure_ascii=False)
    return {**call, "function": {**call["function"], "arguments": arguments}}


def _cut(value: Any) -> Any:
    """A text becomes the line that says that it was cut, where it is longer than that."""
    match value:
        case str():
            return min(value, _CUT, key=len)
        case list():
            return [_cut(inner) for inner in value]
        case dict():
            return {key: _cut(inner) for key, inner in value.items()}
        case _:
            return value
