"""Choose the model for a start without `--model`, and describe the choice in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolling_chat.providers.addresses import describe_server
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
    """The model to start with, why it was chosen, and the address of its server.

    `address` is empty for the provider's default, None if a session does not know it. `is_fallback` means
    that nobody chose the model.
    """

    model: str
    source: str
    address: str | None = ""
    is_fallback: bool = False

    @property
    def line(self) -> str:
        """One line for the user: the model, where requests go, why it was chosen, and how to change it."""
        if self.is_fallback:
            return (
                "No API key and no Ollama found: you are talking to the built-in demo. "
                "Set ANTHROPIC_API_KEY (or another), or choose with --model or /model."
            )
        return f"{self.described}; change it with --model or /model"

    @property
    def described(self) -> str:
        """A clause that names the model, where requests go, and why it was chosen."""
        if self.is_fallback:
            return f"model: {self.model}, not a language model ({self.source})"
        place = "an unknown address" if self.address is None else describe_server(self.model, self.address)
        return f"model: {self.model}{f' at {place}' if place else ''} (from {self.source})"


def choose_model(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    model: str = "",
    probe: Callable[[], str | None] | None = None,
) -> ModelChoice:
    """Choose the first model: --model, the settings, a key's provider, a local Ollama, the built-in demo.

    `probe` returns the name of a model on this machine, or None; it is called only if nothing else decided.
    Never raises: `check_model` checks whether the model exists.
    """
    if model:
        return ModelChoice(model, "--model")
    if settings.model:
        return ModelChoice(settings.model, settings.origins.get("model", "the settings"))
    for provider in KNOWN_PROVIDERS:
        variable = next((name for name in provider.keys if environ.get(name)), "")
        if variable and provider.first_model:
            is_stored = isinstance(environ, KeyedEnvironment) and variable in environ.stored
            source = (
                f"the key of {provider.name} in the keyring"
                if is_stored
                else f"{variable} in the environment"
            )
            return ModelChoice(provider.first_model, source)
    local = probe() if probe is not None else probe_ollama(environ)
    if local:
        return ModelChoice(local, "the local Ollama")
    return ModelChoice(OFFLINE_MODEL, "no key in the environment, no local Ollama", is_fallback=True)


def check_model(model: str, catalog: ModelCatalog) -> None:
    """Raise ProviderError(MODEL_UNKNOWN), with similar names, if a model's provider is unknown.

    Any name after a known provider's prefix is accepted, because providers release models faster than any
    list is updated. So is any name that the catalog contains exactly.
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
