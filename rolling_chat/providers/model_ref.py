"""Parse a model as users write it: the provider that serves it, and the provider's name for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rolling_chat.providers.known_providers import (
    KEYLESS_ELSEWHERE,
    KNOWN_PROVIDERS,
    OWN_CREDENTIALS,
    KnownProvider,
)
from rolling_chat.redaction import is_secret_name

_BY_NAME: Mapping[str, KnownProvider] = {provider.name: provider for provider in KNOWN_PROVIDERS}
_OLLAMA = frozenset({"ollama", "ollama_chat"})  # for its completion endpoint and its chat endpoint

# Prefixes of names that litellm accepts without a provider.
_BARE_NAMES = (
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
    ("command", "cohere_chat"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
)


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model name as `given`: `provider/name`, or a bare name.

    `prefix` is the part before the first slash, as given; empty for a bare name. `provider` is the known
    provider for the prefix or bare name, empty if unknown.
    """

    given: str
    prefix: str
    name: str
    provider: str

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, given: str) -> ModelRef:
        """Parse a model's name; any text is accepted."""
        prefix, slash, name = given.partition("/")
        if not slash:
            lowered = given.lower()
            provider = next((provider for stem, provider in _BARE_NAMES if lowered.startswith(stem)), "")
            return cls(given, "", given, provider)
        return cls(given, prefix, name, prefix.lower() if prefix.lower() in _BY_NAME else "")

    @property
    def served_by(self) -> str:
        """The name of the provider that serves the model, known or not; empty if nothing reveals it."""
        return self.provider or self.prefix.lower()

    @property
    def is_ollama(self) -> bool:
        """Whether Ollama serves the model, by either of its endpoints."""
        return self.provider in _OLLAMA

    @property
    def is_demo(self) -> bool:
        """Whether the model is the built-in demo."""
        return self.provider == "demo"


def find_provider(model: str) -> KnownProvider | None:
    """Return the known provider that serves `model`; None if it is unknown."""
    return _BY_NAME.get(ModelRef.parse(model).provider)


def missing_keys(model: str, address: str, environ: Mapping[str, str]) -> Sequence[str]:
    """Return the variables for a key of `model` if one is required but none is set; else nothing."""
    provider = find_provider(model)
    if provider is None or provider.name in OWN_CREDENTIALS or any(map(environ.get, provider.keys)):
        return ()
    stem = f"{provider.name.upper()}_"
    if any(environ[name] and name.startswith(stem) and is_secret_name(name) for name in environ):
        return ()  # one that litellm knows and this table does not, such as ANTHROPIC_AUTH_TOKEN
    return () if address and provider.name in KEYLESS_ELSEWHERE else provider.keys


def unknown_model_line(model: str, nearest: Sequence[str]) -> str:
    """Build the error line for an unknown model, with the nearest names."""
    advice = (
        f"nearest: {', '.join(nearest)}" if nearest else "give it as provider/model, with --model or /model"
    )
    if ModelRef.parse(model).is_ollama:
        advice = f"get it with: ollama pull {ModelRef.parse(model).name}"
    return f'Unknown model "{model}"; {advice}.'
