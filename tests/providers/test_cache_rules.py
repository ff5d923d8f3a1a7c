"""How long each provider caches a prompt."""

from __future__ import annotations

import pytest

from rolling_chat.providers.cache_rules import cache_rule

MINUTE, HOUR = 60.0, 3_600.0


@pytest.mark.parametrize(
    ("model", "seconds"),
    [
        ("anthropic/claude-sonnet-4-5", 5 * MINUTE),
        ("claude-opus-4-6", 5 * MINUTE),
        ("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", 5 * MINUTE),
        ("openrouter/anthropic/claude-sonnet-4.5", 5 * MINUTE),
        ("openai/gpt-4o", 5 * MINUTE),
        ("openai/gpt-5-mini", 5 * MINUTE),
        ("o3", 5 * MINUTE),
        ("openai/gpt-4.1", 24 * HOUR),
        ("openai/gpt-5.1-codex-max", 24 * HOUR),
        ("openai/gpt-5-2025-08-07", 24 * HOUR),
        ("openai/gpt-5.5-pro", 24 * HOUR),
        ("azure/gpt-4.1", 5 * MINUTE),
        ("azure/gpt-5.5", 24 * HOUR),
        ("openai/gpt-5.6-sol", 30 * MINUTE),
        ("openai/gpt-6.1-terra", 30 * MINUTE),
        ("openrouter/openai/gpt-5.6", 30 * MINUTE),
        ("deepseek/deepseek-chat", 2 * HOUR),
        ("openrouter/deepseek/deepseek-chat-v3", 2 * HOUR),
        ("groq/openai/gpt-oss-120b", 2 * HOUR),
    ],
)
def test_a_prompt_stays_as_long_as_the_provider_says(model: str, seconds: float) -> None:
    rule = cache_rule(model)
    assert rule is not None
    assert (rule.seconds, rule.source[:8]) == (seconds, "https://")


@pytest.mark.parametrize("model", ["gemini/gemini-2.5-pro", "xai/grok-4", "dashscope/qwen3-max"])
def test_a_provider_that_names_no_time_caches_all_the_same(model: str) -> None:
    rule = cache_rule(model)
    assert rule is not None
    assert rule.seconds is None


@pytest.mark.parametrize(
    "model", ["openai/my-server", "openai/gpt-oss-20b", "ollama/deepseek-r1", "demo/offline", "", "mistral/x"]
)
def test_nothing_is_known_of_a_cache_elsewhere(model: str) -> None:
    assert cache_rule(model) is None


def test_marks_that_ask_for_an_hour_get_it_and_nothing_else_changes() -> None:
    hour = cache_rule("claude-sonnet-4-5", "1h")
    assert hour is not None
    assert hour.seconds == HOUR
    assert cache_rule("gpt-4o", "1h") == cache_rule("gpt-4o")
