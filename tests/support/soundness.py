"""What every prompt must be, whatever it was made from: checked against the messages that were given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rolling_chat.context import ContextConfig, Fate, FinalPrompt, PromptReport, Row, prompt_bound
from rolling_chat.messages import Message
from tests.support.prompt_rules import broken_rules

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


def with_ids(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages as a session holds them: each with an id, by which it is known in a prompt."""
    return [Message.from_dict(message, id=f"m{place}") for place, message in enumerate(messages)]


def assert_sound(
    messages: Sequence[Message], prompt: FinalPrompt, config: ContextConfig, model: str | None
) -> None:
    """The prompt fits, is well-formed, and its report tells all that became of `messages`."""
    assert_fits(prompt, config, model)
    assert broken_rules([_as_dict(message) for message in prompt.messages]) == []
    assert next((m.role for m in prompt.messages if m.role != "system"), "user") == "user"
    assert_every_message_has_one_fate(messages, prompt)
    assert_kept_in_order_and_unchanged(messages, prompt)
    assert_what_never_leaves_is_there(messages, prompt)


def assert_fits(prompt: FinalPrompt, config: ContextConfig, model: str | None) -> None:
    """The upper bound, worked out anew from what is sent, is within the window and the limit on input."""
    report = prompt.report
    assert prompt_bound(prompt.messages, tools=TOOLS, model=model) == report.bound
    assert report.token_count <= report.bound, config.token_estimator
    assert report.bound + report.reserve + report.margin <= report.window == config.max_context_tokens
    assert not config.input_limit or report.bound <= config.input_limit
    assert prompt.within_budget
    assert report.within_budget


def assert_every_message_has_one_fate(messages: Sequence[Any], prompt: FinalPrompt) -> None:
    """A row a message, in order; the report's sums are those of its rows; the notice counts what left."""
    report = prompt.report
    assert [row.index for row in report.rows] == list(range(len(messages)))
    counted = Counter(row.fate for row in report.rows)
    assert {fate: counted[fate] for fate in Fate} == {fate: report.count(fate) for fate in Fate}
    assert sum(report.fates.values()) == len(messages)
    for row in report.rows:
        assert (row.tokens_after == 0) == (row.fate is Fate.OMITTED or _has_no_place(row)), row
    assert omitted_by_notice(prompt) == counted[Fate.OMITTED]


def assert_kept_in_order_and_unchanged(messages: Sequence[Message], prompt: FinalPrompt) -> None:
    """What stays stands in order, as it was given unless its row says otherwise."""
    kept = [row for row in prompt.report.rows if row.fate is not Fate.OMITTED and not _has_no_place(row)]
    sent = [message for message in prompt.messages if message.id]
    assert [message.id for message in sent] == [row.id for row in kept]
    for message, row in zip(sent, kept, strict=True):
        given = messages[row.index]
        if not row.index and given.role == "system":
            assert row.fate is Fate.SENT
            assert message.text.startswith(given.text)
        elif row.fate is Fate.SENT:
            assert message == given, row
        elif row.fate is not Fate.REPAIRED:
            assert message != given, row
            assert replace(message, content="", tool_calls=()) == replace(given, content="", tool_calls=())
            assert [call.id for call in message.tool_calls] == [call.id for call in given.tool_calls]


def assert_what_never_leaves_is_there(messages: Sequence[Message], prompt: FinalPrompt) -> None:
    """The system prompt, and the user message that opened the current turn.

    Once that has its answer the person may exclude it too: nothing runs that needs it.
    """
    if messages and messages[0].role == "system" and messages[0].text.strip():
        assert messages[0].text in prompt.messages[0].text
    opening = [at for at, m in enumerate(messages) if at and m.role in {"user", "system"} and not _goes_on(m)]
    if not opening or (_is_answered(messages) and prompt.report.rows[opening[-1]].fate is Fate.EXCLUDED):
        return
    request = messages[opening[-1]]
    if request.role == "user" and _says_something(request):
        assert request in prompt.messages


def omitted_by_notice(prompt: FinalPrompt) -> int:
    """How many messages the notice in the system message says are missing."""
    first = prompt.messages[0] if prompt.messages else None
    text = "" if first is None or first.role != "system" else first.text
    counted = re.findall(r"^\[conversation truncated — (\d+) older messages omitted\]$", text, re.MULTILINE)
    return int(counted[-1]) if counted else 0


def totals(report: PromptReport) -> dict[str, Any]:
    """The report's figures, its rows and all."""
    return {**report.totals(), "rows": list(report.rows)}


def _has_no_place(row: Row) -> bool:
    """No prompt can carry the message, or the person excluded it."""
    return row.fate in {Fate.REPAIRED, Fate.EXCLUDED} and row.tokens_after == 0


def _goes_on(message: Message) -> bool:
    return bool(message.extras) and message.extras is not None and message.extras.get("turn") == "same"


def _is_answered(messages: Sequence[Message]) -> bool:
    return messages[-1].role == "assistant" and not messages[-1].tool_calls


def _says_something(message: Message) -> bool:
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return bool(message.content) and all(
        part["type"] != "text" or part["text"].strip() for part in message.content
    )


def _as_dict(message: Message | dict[str, Any]) -> dict[str, Any]:
    return message.to_dict() if isinstance(message, Message) else message
