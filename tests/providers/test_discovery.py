"""Which model a start uses, and how the choice is described."""

from __future__ import annotations

import pytest

from rolling_chat.providers.discovery import check_model, choose_model
from rolling_chat.providers.known_providers import KNOWN_PROVIDERS, KnownProvider
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.schema import Settings

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-x", "MISTRAL_API_KEY": "x"}


def _never() -> str | None:
    raise AssertionError("a local server was looked for although the model was known")


def _nothing() -> str | None:
    return None


def test_the_command_line_comes_first() -> None:
    choice = choose_model(Settings(model="openai/a"), KEYS, model="openai/b", probe=_never)

    assert choice.model == "openai/b"
    assert choice.line == "model: openai/b at api.openai.com (from --model); change it with --model or /model"


def test_then_the_settings_with_the_file_they_came_from() -> None:
    settings = Settings(model="openai/a", origins={"model": "/home/ada/config.toml"})
    assert choose_model(settings, KEYS, probe=_never).line.startswith(
        "model: openai/a at api.openai.com (from /home/ada/config.toml)"
    )


def test_then_a_key_in_the_environment_which_is_named_but_not_shown() -> None:
    choice = choose_model(Settings(), KEYS, probe=_never)

    assert choice.model.startswith("anthropic/")
    assert "ANTHROPIC_API_KEY" in choice.line
    assert "sk-ant-x" not in choice.line


def test_an_empty_key_is_none() -> None:
    assert choose_model(Settings(), {"OPENAI_API_KEY": ""}, probe=_nothing).model == "demo/offline"


def test_then_a_local_ollama() -> None:
    choice = choose_model(Settings(), {}, probe=lambda: "ollama/qwen3")
    where = "at localhost:11434 (from the local Ollama)"
    assert choice.line == f"model: ollama/qwen3 {where}; change it with --model or /model"


def test_at_last_the_offline_model_which_says_what_it_is() -> None:
    choice = choose_model(Settings(), {}, probe=_nothing)

    assert choice.model == "demo/offline"
    assert "built-in demo" in choice.line
    assert "--model" in choice.line


@pytest.mark.parametrize("provider", [p for p in KNOWN_PROVIDERS if p.first_model], ids=lambda p: p.name)
def test_the_first_model_of_each_key_exists_and_takes_tools(
    provider: KnownProvider, catalog: ModelCatalog
) -> None:
    name, first_model = provider.name, provider.first_model
    check_model(first_model, catalog)
    assert first_model.startswith(f"{name}/")
    if name == "openrouter":  # its router stands for all models, and is in no table
        return
    info = catalog.lookup(first_model)
    assert info is not None
    assert info.supports_tools
    assert info.max_input_tokens > 100_000


@pytest.mark.parametrize(
    "model",
    ["gpt-5.4", "anthropic/claude-of-next-year", "openai/my-own-server", "ollama/x", "demo/offline-32k"],
)
def test_a_model_that_may_well_exist_passes(model: str, catalog: ModelCatalog) -> None:
    check_model(model, catalog)


@pytest.mark.parametrize(
    "model", ["gpt-5.4x", "nobody/nothing", "openai/", "demo/online", "demo/offline-0", "", " gpt-5.4"]
)
def test_any_other_is_refused(model: str, catalog: ModelCatalog) -> None:
    with pytest.raises(ProviderError) as caught:
        check_model(model, catalog)
    assert caught.value.kind is ErrorKind.MODEL_UNKNOWN


def test_a_misspelt_model_brings_the_nearest_names(catalog: ModelCatalog) -> None:
    with pytest.raises(ProviderError, match=r"nearest: .*claude-sonnet-5"):
        check_model("claude-sonet-5", catalog)


def test_a_model_without_its_provider_is_named_in_full(catalog: ModelCatalog) -> None:
    with pytest.raises(ProviderError, match=r"nearest: .*\bdeepseek/deepseek-v3\.2"):
        check_model("nobody/deepseek-v3.2", catalog)
