"""Every model's name is parsed in one place."""

from __future__ import annotations

import pytest

from rolling_chat.providers.model_ref import ModelRef


@pytest.mark.parametrize(
    ("given", "prefix", "name", "provider", "served_by"),
    [
        ("anthropic/claude-x", "anthropic", "claude-x", "anthropic", "anthropic"),
        ("OpenAI/gpt-x", "OpenAI", "gpt-x", "openai", "openai"),
        ("openrouter/openai/gpt-x", "openrouter", "openai/gpt-x", "openrouter", "openrouter"),
        ("Nobody/x", "Nobody", "x", "", "nobody"),
        ("Claude-x", "", "Claude-x", "anthropic", "anthropic"),
        ("llama", "", "llama", "", ""),
        ("/x", "", "x", "", ""),
        ("", "", "", "", ""),
    ],
)
def test_a_name_is_taken_apart(given: str, prefix: str, name: str, provider: str, served_by: str) -> None:
    ref = ModelRef.parse(given)
    assert ref == ModelRef(given, prefix, name, provider)
    assert ref.served_by == served_by


@pytest.mark.parametrize("given", ["ollama/qwen3:8b", "ollama_chat/qwen3:8b"])
def test_ollama_has_two_names(given: str) -> None:
    assert ModelRef.parse(given).is_ollama
    assert not ModelRef.parse("openai/ollama").is_ollama
