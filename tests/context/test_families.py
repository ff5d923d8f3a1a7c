"""What a model's name reveals about its tokenizer, and what its provider adds to every request."""

from __future__ import annotations

import json

import pytest

from rolling_chat.context import estimate_tokens, prompt_bound
from rolling_chat.context.families import FAMILIES, family_of

HELLO = [{"role": "user", "content": "Hello, how are you today?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def beside(model: str, than: str, tools: list[dict[str, object]] | None = None) -> int:
    """How many tokens more one model counts of a short request than another."""
    return estimate_tokens(HELLO, model, tools) - estimate_tokens(HELLO, than, tools)


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (("claude-3-5-haiku-20241022", "anthropic.claude-3-haiku-20240307-v1:0"), "claude"),
        (("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "anthropic.claude-v2"), "claude"),
        (("claude-sonnet-4-20250514", "claude-opus-4-1-20250805", "claude-sonnet-4@20250514"), "claude"),
        (("anthropic/claude-sonnet-4-5", "claude-haiku-4-5-20251001"), "claude-4.5"),
        (("openrouter/anthropic/claude-4.6-sonnet-20260217", "claude-opus-4.6"), "claude-4.5"),
        (("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "snowflake/claude-sonnet-4-6"), "claude-4.5"),
        (("claude-opus-4-7", "claude-opus-4.8", "us.anthropic.claude-sonnet-5"), "claude-4.7"),
        (("claude-opus-5", "claude-fable-5", "claude-next", "claude-sonnet-latest"), "claude-4.7"),
        (("openai.gpt-oss-120b-1:0", "ollama/gpt-oss:20b"), "gpt-oss"),
        (("cohere/command-a-03-2025", "command-a-reasoning-08-2025"), "command-a"),
        (("command-r-plus", "command"), "command"),
        (("us.amazon.nova-2-lite-v1:0",), "nova-2"),
        (("amazon.nova-micro-v1:0",), "nova"),
        (("x-ai/grok-4.1-fast",), "grok"),
        (("openai/my-own-7b", "", None), "unknown"),
    ],
)
def test_a_family_is_known_by_every_form_of_a_models_name(names: tuple[str | None, ...], family: str) -> None:
    assert [family_of(name).name for name in names] == [family] * len(names)


@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        ("gpt-oss-120b", 52, 66),  # recorded with five hosts: 57 to 61
        ("xai/grok-4.3", 165, 190),  # 172 to 180
        ("command-a-03-2025", 475, 500),  # 470 to 490
        ("us.amazon.nova-2-lite-v1:0", 38, 50),  # 45 to 47
    ],
)
def test_what_a_provider_adds_to_every_request_is_in_the_estimate(model: str, least: int, most: int) -> None:
    assert least <= beside(model, "gpt-4o") <= most


def test_claude_is_given_longer_instructions_for_tools_since_its_generation_4_5() -> None:
    more = beside("claude-sonnet-4-5", "claude-sonnet-4-20250514", [WEATHER])
    assert 134 <= more <= 175
    assert beside("claude-sonnet-4-5", "claude-sonnet-4-20250514") == 0


def test_an_openai_tool_takes_less_than_its_json() -> None:
    tools = estimate_tokens(HELLO, "gpt-4o", [WEATHER]) - estimate_tokens(HELLO, "gpt-4o")
    assert 0 < tools < estimate_tokens([{"role": "user", "content": json.dumps(WEATHER)}], "gpt-4o")


@pytest.mark.parametrize(
    ("model", "plain", "reported"),
    [
        ("command-a-reasoning-08-2025", 18, 1_394),
        ("claude-sonnet-4-5", 15, 43),  # with thinking on
        ("deepseek-v4-flash", 17, 97),  # with thinking on
        ("openai/gpt-oss-20b", 17, 78),
        ("grok-4.3", 20, 254),  # with a schema for the answer
        ("meta-llama/llama-3.1-8b-instruct", 15, 40),
    ],
)
def test_the_bound_holds_the_largest_addition_recorded(model: str, plain: int, reported: int) -> None:
    assert prompt_bound([{"role": "user", "content": ""}], model=model) >= reported - plain


def test_no_family_is_bounded_by_less_than_it_is_estimated_at() -> None:
    for _, family in FAMILIES:
        assert family.request_extra_bound >= family.request_extra or family.request_extra <= 3
        assert family.tools_extra_bound >= family.tools_extra
        assert family.prior >= max(family.factor, family.tools_factor)
