"""The rules that OpenAI and Anthropic hold a conversation to, written down apart from the pipeline.

Shares no code with `rolling_chat`: it reads plain dictionaries and says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def broken_rules(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything wrong with a prompt, in words; empty when a provider would take it."""
    problems: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "system" and place:
            problems.append(f"{place}: a system message that is not the first")
        if role == "tool":
            call = message.get("tool_call_id")
            if call in waiting:
                waiting.remove(call)
            else:
                problems.append(f"{place}: a result for {call}, which no call before it asked for")
        elif waiting:
            problems.append(f"{place}: {waiting} unanswered before a {role} message")
            waiting = []
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or []]
        if not message.get("content") and not message.get("tool_calls"):
            problems.append(f"{place}: empty content")
    if waiting:
        problems.append(f"end: {waiting} unanswered")
    return problems
