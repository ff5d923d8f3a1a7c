"""Hypothesis strategies for conversations, and short ways to write them in tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = st.text(
    alphabet=st.sampled_from('abc de fgh\n0123{}",:é中😀'), min_size=1, max_size=120
) | st.integers(1, 400).map(lambda size: "some words of a log line 0x1f\n" * size)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, *calls: tuple[str, str]) -> dict[str, Any]:
    """An assistant message; `calls` are (id, tool name)."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for call_id, name in calls
        ]
    return message


def tool(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One turn: a request, some iterations of one to three calls, perhaps an answer."""
    messages = [user(draw(WORDS))]
    for number in range(draw(st.integers(0, 4))):
        ids = [f"c{number}_{at}" for at in range(draw(st.integers(1, 3)))]
        messages.append(assistant(draw(st.just("") | WORDS), *((one, "read_file") for one in ids)))
        messages.extend(tool(one, draw(WORDS)) for one in ids)
    if draw(st.booleans()):
        messages.append(assistant(draw(WORDS)))
    return messages


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A well-formed conversation with its system message first."""
    messages = [{"role": "system", "content": "You are a careful assistant."}]
    for turn in draw(st.lists(turns(), min_size=1, max_size=8)):
        messages.extend(turn)
    return messages


@st.composite
def torn_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation from which messages were lost at random: orphans, gaps, an assistant first."""
    messages = draw(conversations())
    lost = draw(st.sets(st.integers(1, len(messages)), max_size=len(messages) // 2))
    return [message for at, message in enumerate(messages) if at not in lost]
