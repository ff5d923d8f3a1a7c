"""The first model: which one a start without `--model` uses, and the line that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolling_chat.providers.addresses import place_of
from rolling_chat.providers.known_providers import KNOWN_PROVIDERS, KeyedEnvironment
from rolling_chat.providers.model_ref import ModelRef, find_provider, unknown_model_line
from rolling_chat.providers.offline import OFFLINE_MODEL, offline_window
from rolling_chat.providers.ollama import probe_ollama
from rolling_chat.providers.protocol import ErrorKind, ProviderError

if TYPE_CHECKING:
    from rolling_chat.settings.catalog import ModelCatalog
    from rolling_chat.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model to start with, what chose it, and the address of its server.

    `address` is empty for the provider's own, None where a session does not know it. `is_fallback`: no one
    chose it.
    """

    model: str
    source: str
    address: str | None = ""
    is_fallback: bool = False

    @property
    def line(self) -> str:
        """One line for the user: which model, where requests go, what chose it, how to change it."""
        if self.is_fallback:
            return (
                "No API key and no Ollama found: you are talking to the built-in demo. "
                "Set ANTHROPIC_API_KEY (or another), or choose with --model or /model."
            )
        return f"{self.described}; change it with --model or /model"

    @property
    def described(self) -> str:
        """One clause on which model, where requests go, and what chose it."""
        if self.is_fallback:
            return f"model: {self.model}, no language model ({self.source})"
        place = "an unknown address" if self.address is None else place_of(self.model, self.address)
        return f"model: {self.model}{f' at {place}' if place else ''} (from {self.source})"


def choose_model(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    model: str = "",
    probe: Callable[[], str | None] | None = None,
) -> ModelChoice:
    """Choose the first model: --model, the settings, a key's provider, a local Ollama, the built-in demo.

    `probe` gives the name of a model that runs on this machine, or None; it is asked only where
    nothing before it decided. Never raises: whether the model exists is `check_model`'s question.
    """
    if model:
        return ModelChoice(model, "--model")
    if settings.model:
        return ModelChoice(settings.model, settings.origins.get("model", "the settings"))
    for provider in KNOWN_PROVIDERS:
        held = next((name for name in provider.keys if environ.get(name)), "")
        if held and provider.first_model:
            is_stored = isinstance(environ, KeyedEnvironment) and held in environ.stored
            source = (
                f"the key of {provider.name} in the keyring" if is_stored else f"{held} in the environment"
            )
            return ModelChoice(provider.first_model, source)
    local = probe() if probe is not None else probe_ollama(environ)
    if local:
        return ModelChoice(local, "the local Ollama")
    return ModelChoice(OFFLINE_MODEL, "no key in the environment, no local Ollama", is_fallback=True)


def check_model(model: str, catalog: ModelCatalog) -> None:
    """Raise ProviderError(MODEL_UNKNOWN), with similar names, if no provider of a model is known.

    A name behind a known provider's passes, listed or not: providers bring out models faster than
    any list does. So does any name that stands in the catalog just so.
    """
    provider = find_provider(model)
    if provider is not None and provider.name == "demo":
        known = offline_window(model) is not None
        nearest = [OFFLINE_MODEL, f"{OFFLINE_MODEL}-32k"]
    else:
        ref = ModelRef.parse(model)
        info = catalog.lookup(model)
        known = bool(ref.name) if provider and ref.prefix else info is not None and info.name == model
        nearest = (
            [] if known else list(dict.fromkeys([*([info.name] if info else []), *catalog.nearest(model)]))
        )
    if not known or model != model.strip():
        raise ProviderError(ErrorKind.MODEL_UNKNOWN, unknown_model_line(model, nearest[:3]))
