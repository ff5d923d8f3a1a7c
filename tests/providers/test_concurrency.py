"""Which servers are known to answer several requests at once."""

from __future__ import annotations

import pytest

from rolling_chat.providers.concurrency import answers_in_parallel, server_of


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("anthropic/claude-sonnet-5-5", ""),
        ("gpt-5.4", ""),
        ("openai/gpt-5.4", "https://api.openai.com/v1"),
        ("azure/ours", "https://ours.openai.azure.com"),
        ("openai/gpt-5.4", "https://api.groq.com/openai/v1"),
        ("demo/offline", ""),
    ],
)
def test_well_known_hosted_servers_answer_in_parallel(model: str, address: str) -> None:
    assert answers_in_parallel(server_of(model, address))


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("openai/local", "http://127.0.0.1:8080/v1"),
        ("openai/local", "http://[::1]:8080/v1"),
        ("openai/local", "http://192.168.1.7/v1"),
        ("openai/local", "https://llm.example.org/v1"),
        ("openai/local", "https://api.openai.com.example.org/v1"),
        ("openai/local", "http://[broken"),
        ("openai/gpt-5.4", "http://127.0.0.1:1/v1"),
        ("anthropic/claude-sonnet-5-5", "http://10.0.0.2"),
        ("ollama_chat/qwen3", ""),
        ("lm_studio/it", ""),
        ("nobody/knows", ""),
    ],
)
def test_self_hosted_and_unknown_servers_may_not(model: str, address: str) -> None:
    assert not answers_in_parallel(server_of(model, address))
