"""What servers report about their models: lists and windows of each kind, valid and broken."""

from __future__ import annotations

from typing import Any

import pytest

from rolling_chat.providers.served import ServedModel, ask_about, list_models, served_models
from rolling_chat.settings.catalog import Prices
from tests.support.json_server import json_server

PROPS = {"default_generation_settings": {"n_ctx": 8_192}, "total_slots": 1}


@pytest.mark.parametrize("key", ["kv-secret\nvalue", "kv-secrét€-value"])
def test_a_key_that_no_header_can_carry_is_not_quoted(key: str) -> None:
    with pytest.raises(OSError, match="the key or the address cannot be sent") as caught:
        served_models("http://127.0.0.1:9", {"OPENAI_API_KEY": key})
    assert "cret" not in str(caught.value)


def _list(**entry: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "other", "context_length": 5}, {"id": "mine"} | entry]}


@pytest.mark.parametrize(
    ("answers", "window", "source"),
    [
        ({"/v1/models": _list(max_model_len=40_960)}, 40_960, "its list of models"),
        ({"/v1/models": _list(context_length=32_768)}, 32_768, "its list of models"),
        ({"/v1/models": _list(max_context_length=131_072, loaded_context_length=4_096)}, 4_096, "its list"),
        ({"/v1/models": _list(), "/props": PROPS}, 8_192, "llama.cpp"),
        ({"/props": PROPS}, 8_192, "llama.cpp"),
        (
            {"/v1/models": _list(), "/api/v0/models": _list(max_context_length=9, loaded_context_length=7)},
            7, "LM Studio",
        ),
    ],
)  # fmt: skip
def test_a_server_of_ones_own_names_its_window(answers: dict[str, Any], window: int, source: str) -> None:
    with json_server(answers) as server:
        said = ask_about("openai/mine", f"{server.address}/v1", {})
    assert said is not None
    assert (said.window, said.source[: len(source)]) == (window, source)


def test_ollama_names_the_length_of_the_model_or_what_its_modelfile_sets() -> None:
    shown: dict[str, Any] = {"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}}
    with json_server({"/api/show": shown}) as server:
        said = ask_about("ollama/llama3.1:8b", server.address, {})
        assert said == ServedModel("llama3.1:8b", 131_072, source="Ollama /api/show")
        assert server.asked == [("/api/show", "", b'{"model": "llama3.1:8b"}')]
    with json_server({"/api/show": shown | {"parameters": 'stop "x"\nnum_ctx   4096\n'}}) as server:
        said = ask_about("ollama_chat/x", "", {"OLLAMA_HOST": server.address})
    assert said == ServedModel("x", 4_096, source="Ollama's Modelfile")


def test_openrouters_list_has_windows_output_limits_and_prices() -> None:
    entry = {
        "id": "anthropic/claude-x",
        "context_length": 200_000,
        "top_provider": {"max_completion_tokens": 64_000},
        "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "free"},
    }
    with json_server({"/api/v1/models": {"data": [entry]}}) as server:
        environ = {"OPENROUTER_API_KEY": "sk-or"}
        said = ask_about("openrouter/anthropic/claude-x", f"{server.address}/api/v1", environ)
        assert server.asked[0][1] == "Bearer sk-or"
    assert said is not None
    assert (said.window, said.max_output, said.prices) == (200_000, 64_000, Prices(0.000003, 0.000015))


@pytest.mark.parametrize(
    "answer",
    [
        500, 404, b"", b"not json", b"[]", {"data": 3}, {"data": [3]}, {"data": [{"name": "x"}]},
        _list(context_length="many"), _list(context_length=-1), _list(context_length=True),
        _list(context_length=10**15), _list(top_provider=3, pricing="free"), b"[" * 200_000,
        {"default_generation_settings": {"n_ctx": None}}, {"default_generation_settings": []},
    ],
)  # fmt: skip
def test_a_broken_answer_says_nothing(answer: Any) -> None:
    paths = ("/v1/models", "/models", "/props", "/api/v0/models", "/api/show")
    with json_server(dict.fromkeys(paths, answer)) as server:
        said = ask_about("openai/mine", f"{server.address}/v1", {})
        assert said is None or not said.window
        assert ask_about("ollama/mine", server.address, {}) is None
    assert ask_about("openai/mine", "http://127.0.0.1:9/v1", {}) is None


def test_the_list_of_a_server_is_read_below_v1_too() -> None:
    with json_server({"/v1/models": _list()}) as server:
        names = [one.name for one in list_models(server.address, {})]
    assert names == ["other", "mine"]
