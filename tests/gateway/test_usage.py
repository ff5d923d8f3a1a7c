"""What counts as a report of a prompt's size."""

from __future__ import annotations

from typing import Any

import pytest

from rolling_chat.gateway.usage import counted_prompt

STREAM = {"stream": True}
OPENAI = {"prompt_tokens": 70, "completion_tokens": 2}
ANTHROPIC = {"input_tokens": 10, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 40}


@pytest.mark.parametrize(
    ("kwargs", "usage", "tokens"),
    [
        ({}, OPENAI, 70),
        ({}, ANTHROPIC, 70),
        ({}, {"prompt_tokens": True}, 0),
        ({}, None, 0),
        (STREAM, OPENAI, 0),
        ({**STREAM, "stream_options": {"include_usage": True}}, OPENAI, 70),
        ({**STREAM, "optional_params": {"stream_options": {"include_usage": True}}}, OPENAI, 70),
        ({**STREAM, "custom_llm_provider": "anthropic"}, OPENAI, 70),
    ],
)
def test_only_what_the_model_itself_reported_counts(kwargs: dict[str, Any], usage: Any, tokens: int) -> None:
    assert counted_prompt(kwargs, {"usage": usage}, is_anthropic=False) == tokens


def test_a_stream_of_anthropics_wire_always_reports() -> None:
    assert counted_prompt(STREAM, {"usage": ANTHROPIC}, is_anthropic=True) == 70
