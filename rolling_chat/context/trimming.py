"""Trim messages to a number of tokens, for callers that need nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolling_chat.context.config import ContextConfig
from rolling_chat.context.prompt import build_final_prompt
from rolling_chat.context.report import Fate
from rolling_chat.context.turns import group_into_turns, opens_with_system, role_of
from rolling_chat.message_validation import normalize_message
from rolling_chat.messages import Json, JsonObject


class LimitedMessages(NamedTuple):
    """Messages that fit, whether any were omitted or shortened, and how many were omitted."""

    messages: list[dict[str, Json]]
    truncated: bool
    dropped_count: int


def enforce_context_limit(messages: Sequence[JsonObject], max_input_tokens: int) -> LimitedMessages:
    """Trim `messages` to `max_input_tokens`, from which the reserve is already subtracted.

    Input and output are OpenAI-format dictionaries. Raises ContextOverflowError if they cannot be made to
    fit; an empty list always fits.
    """
    if not messages:
        return LimitedMessages([], truncated=False, dropped_count=0)
    prompt = build_final_prompt(messages, _exact(max_input_tokens))
    dropped = prompt.report.count(Fate.OMITTED)
    shortened = prompt.report.count(Fate.SHORTENED, Fate.MASKED)
    return LimitedMessages(prompt.messages, bool(dropped or shortened), dropped)


def trim_conversation(
    messages: Sequence[JsonObject],
    target_tokens: int,
    options: Mapping[str, Json] | None = None,
) -> list[dict[str, Json]]:
    """Trim `messages` to `target_tokens` as far as possible; never raise.

    `options` are keys of ContextConfig. If the messages cannot fit, or the options are invalid, the result is
    the system message and the current turn's user messages, which may still exceed the target. Entries that
    are not messages are left out.
    """
    whole = [message for message in messages if isinstance(message, Mapping)] if _is_list(messages) else []
    try:
        return build_final_prompt(whole, _exact(target_tokens, options)).messages
    except Exception:  # the function promises not to raise, whatever a caller passes
        return _minimum(whole)


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _exact(room: int, options: Mapping[str, Json] | None = None) -> ContextConfig:
    keys = {
        "max_context_tokens": max(1, min(room, sys.maxsize)),
        "reserved_output_tokens": 0,
        "safety_margin": 0.0,
        "max_history_tokens": 0,
        "trim_to": 1.0,
        **(options or {}),
    }
    return ContextConfig(**keys)


def _minimum(messages: Sequence[JsonObject]) -> list[dict[str, Json]]:
    systems = messages[:1] if opens_with_system(messages) else ()
    turns = group_into_turns(messages)
    users = [message for message in (turns[-1] if turns else []) if role_of(message) == "user"]
    return [dict(normalize_message(message)) for message in (*systems, *users)]
