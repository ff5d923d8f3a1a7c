"""Trimming for callers who have messages and a number, and want nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolling_chat.context.config import ContextConfig
from rolling_chat.context.errors import ContextOverflowError
from rolling_chat.context.prompt import build_final_prompt
from rolling_chat.context.report import Fate
from rolling_chat.context.turns import group_into_turns
from rolling_chat.messages import Json, JsonObject


class LimitedMessages(NamedTuple):
    """Messages that fit; whether anything left or was shortened; how many messages left."""

    messages: list[dict[str, Json]]
    truncated: bool
    dropped_count: int


def enforce_context_limit(messages: Sequence[JsonObject], max_input_tokens: int) -> LimitedMessages:
    """Make `messages` fit `max_input_tokens`: the room for input, the reserve already off.

    OpenAI-format dictionaries in and out. Raises ContextOverflowError where they cannot fit.
    """
    prompt = build_final_prompt(messages, _exact(max_input_tokens))
    dropped = prompt.report.count(Fate.OMITTED)
    shortened = prompt.report.count(Fate.SHORTENED, Fate.MASKED)
    return LimitedMessages(prompt.messages, bool(dropped or shortened), dropped)


def trim_conversation(
    messages: Sequence[JsonObject],
    target_tokens: int,
    options: Mapping[str, Json] | None = None,
) -> list[dict[str, Json]]:
    """`messages` trimmed to `target_tokens` as far as they can be; never raises.

    `options` are keys of ContextConfig. What cannot fit comes down to the system message and the
    current turn's user message, which may still be over the target.
    """
    try:
        return build_final_prompt(messages, _exact(target_tokens, options)).messages
    except (ContextOverflowError, ValueError, TypeError):
        return _least(messages)


def _exact(room: int, options: Mapping[str, Json] | None = None) -> ContextConfig:
    keys = {
        "max_context_tokens": max(1, room),
        "reserved_output_tokens": 0,
        "safety_margin": 0.0,
        "max_history_tokens": 0,
        "trim_to": 1.0,
        **(options or {}),
    }
    return ContextConfig(**keys)


def _least(messages: Sequence[JsonObject]) -> list[dict[str, Json]]:
    systems = [message for message in messages[:1] if message.get("role") == "system"]
    turns = group_into_turns(messages)
    users = [message for message in (turns[-1] if turns else []) if message.get("role") == "user"]
    return [dict(message) for message in (*systems, *users)]
