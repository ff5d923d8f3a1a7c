"""The context window of a model by its name, for models that no catalogue lists."""

from __future__ import annotations

DEFAULT_WINDOW = 128_000

# First match in the lower-cased name wins; tokens.
_WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 128_000),
    ("gemini", 1_000_000),
    ("grok-4", 2_000_000),
    ("grok", 131_072),
    ("deepseek-v3", 163_840),
    ("deepseek-chat-v3", 163_840),
    ("deepseek", 128_000),
    ("qwen3", 131_072),
    ("qwen", 128_000),
    ("llama-4", 327_680),
    ("llama", 128_000),
    ("mistral-large", 262_144),
    ("mistral", 128_000),
    ("mixtral", 128_000),
)


def get_context_limit(model: str | None) -> int:
    """The context window of `model` in tokens; 128,000 where the name says nothing."""
    return _window_by_name(model) or DEFAULT_WINDOW


def knows_context_limit(model: str | None) -> bool:
    """Say whether the name of `model` tells its context window."""
    return _window_by_name(model) > 0


def _window_by_name(model: str | None) -> int:
    name = (model or "").lower()
    return next((window for stem, window in _WINDOWS if stem in name), 0)
