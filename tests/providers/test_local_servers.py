"""Servers on this machine, on their default ports."""

from __future__ import annotations

import pytest

from rolling_chat.providers import local_servers
from rolling_chat.providers.local_servers import UsualServer, find_servers
from tests.support.json_server import json_server
from tests.support.patience import PATIENCE_SECONDS


def test_the_servers_that_answer_are_listed_with_their_windows_and_are_sent_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_servers, "_TIMEOUT", PATIENCE_SECONDS)
    ollama = {
        "/api/tags": {"models": [{"name": "llama3:8b"}, {"name": "nomic-embed-text"}]},
        "/api/show": {"model_info": {"llama.context_length": 8_192}},
    }
    props = {"default_generation_settings": {"n_ctx": 512}}
    llama = {"/v1/models": {"data": [{"id": "tiny"}]}, "/props": props}
    with json_server(ollama) as first, json_server(llama) as second:
        usual = (
            UsualServer("llama.cpp", f"{second.address}/v1", "openai"),
            UsualServer("vLLM", "http://127.0.0.1:9/v1", "hosted_vllm"),
        )
        found = find_servers({"OLLAMA_HOST": first.address, "OPENAI_API_KEY": "sk-secret"}, usual)
        assert [(one.name, [(model.name, model.window) for model in one.models]) for one in found] == [
            ("Ollama", [("ollama/llama3:8b", 8_192)]),
            ("llama.cpp", [("openai/tiny", 512)]),
        ]
        assert {key for _, key, _ in (*first.asked, *second.asked)} == {""}


def test_where_nothing_runs_nothing_is_found() -> None:
    nobody = (UsualServer("vLLM", "http://127.0.0.1:9/v1", "hosted_vllm"),)
    assert find_servers({"OLLAMA_HOST": "http://127.0.0.1:9"}, nobody) == []
