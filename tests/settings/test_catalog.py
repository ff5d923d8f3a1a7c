"""What is known of models, without importing litellm."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rolling_chat.settings.catalog import NO_PRICES, ModelCatalog, load_catalog


@pytest.mark.parametrize(
    ("model", "name", "window"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5", 200_000),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", 200_000),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", 200_000),
        ("gpt-4o", "gpt-4o", 128_000),
        ("openai/gpt-4o", "gpt-4o", 128_000),
        ("gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro", 1_048_576),
        ("deepseek/deepseek-chat", "deepseek/deepseek-chat", 131_072),
        ("ollama/llama3.1:8b", "ollama/llama3.1", 8192),
        ("ollama_chat/llama3.1", "ollama/llama3.1", 8192),
    ],
)
def test_a_model_is_found_with_and_without_its_provider(model: str, name: str, window: int) -> None:
    info = load_catalog().lookup(model)
    assert info is not None
    assert (info.name, info.max_input_tokens) == (name, window)
    assert info.supports_tools


@pytest.mark.parametrize(
    "model",
    ["", "/", "nix", "demo/offline", "openai/my-server", "text-embedding-3-small", "sample_spec", "a" * 9999],
)
def test_what_is_no_chat_model_is_unknown(model: str) -> None:
    assert load_catalog().lookup(model) is None


def test_prices_hold_only_for_the_provider_that_asks_them() -> None:
    catalog = load_catalog()
    own, router = catalog.lookup("anthropic/claude-sonnet-4-5"), catalog.lookup("router/claude-sonnet-4-5")
    assert own is not None
    assert router is not None
    assert own.prices.input == 3e-06
    assert own.prices.cache_read is not None
    assert router.prices == NO_PRICES


def test_a_model_that_several_serve_gets_the_smallest_window() -> None:
    entry = {"mode": "chat", "litellm_provider": "x"}
    catalog = ModelCatalog(
        {
            "a/big-llm": entry | {"max_input_tokens": 200_000},
            "b/big-llm": entry | {"max_input_tokens": 32_000},
            "c/big-llm": entry,
        }
    )
    info = catalog.lookup("nobody/big-llm")
    assert info is not None
    assert (info.name, info.max_input_tokens, info.prices) == ("b/big-llm", 32_000, NO_PRICES)


def test_a_table_with_odd_entries_is_read() -> None:
    catalog = ModelCatalog(
        {
            "odd": {"mode": "chat", "max_input_tokens": "many", "input_cost_per_token": True},
            "broken": {"mode": "chat", "max_input_tokens": float("nan"), "litellm_provider": None},
            "none": {},
        }
    )
    odd = catalog.lookup("odd")
    assert odd is not None
    assert (odd.max_input_tokens, odd.prices.input, odd.provider) == (0, None, "")
    assert catalog.names() == ("broken", "odd")
    assert catalog.nearest("brokn") == ["broken"]
    assert catalog.nearest("x/od") == ["odd"]


def test_only_chat_models_are_listed() -> None:
    names = load_catalog().names()
    assert "gpt-4o" in names
    assert "claude-sonnet-4-5" in names
    assert not {"text-embedding-3-small", "dall-e-3", "sample_spec"} & set(names)


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonet-4-5", "claude-sonnet-4-5"),
        ("openai/gpt-40", "gpt-4o"),
        ("gemini/gemini-2.5-por", "gemini/gemini-2.5-pro"),
        ("gpt4o", "gpt-4o"),
    ],
)
def test_the_name_that_was_meant_is_among_the_nearest(model: str, meant: str) -> None:
    nearest = load_catalog().nearest(model)
    assert meant in nearest
    assert len(nearest) == len(set(nearest)) == 3


@pytest.mark.parametrize("model", ["", "/", "qqqqqqqqqqqq", "\x1b[2J", "\ud800"])
def test_there_may_be_nothing_near(model: str) -> None:
    assert load_catalog().nearest(model) == []


def test_reading_the_catalogue_imports_neither_litellm_nor_the_screen() -> None:
    code = """
import sys
from rolling_chat.settings import catalog, load, themes, write
import rolling_chat.sessions.opening, rolling_chat.sessions.export
assert catalog.load_catalog().lookup("gpt-4o")
heavy = {"litellm", "textual", "rich", "openai", "pydantic", "asyncio"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
