"""Which model answers, and which could."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.agent.runtime import Runtime
from rolling_chat.providers.discovery import ModelChoice, check_model, choose_model
from rolling_chat.providers.known import find_provider
from rolling_chat.sessions.records import SessionInfo

_DEMO_MODELS = ("demo/offline", "demo/offline-32k")


def pick_model(runtime: Runtime, model: str, session: SessionInfo | None) -> ModelChoice:
    """The model asked for, else the session's own, else what settings and environment say.

    Raises ProviderError (MODEL_UNKNOWN, with the nearest names) for a name that nobody serves.
    """
    if not model and session is not None and session.model:
        line = f"model: {session.model} (from this session); change it with --model or /model"
        return ModelChoice(session.model, "session", line)
    choice = choose_model(runtime.settings, runtime.environ, model=model)
    if choice.model not in runtime.settings.models:
        check_model(choice.model, runtime.catalog)
    return choice


def reachable_models(runtime: Runtime) -> Sequence[str]:
    """The models of the settings, those whose provider has a key or needs none, and the demo model."""
    names = dict.fromkeys(runtime.settings.models)
    names |= dict.fromkeys(name for name in runtime.catalog.names() if _has_key(name, runtime))
    return [*names, *(name for name in _DEMO_MODELS if name not in names)]


def _has_key(model: str, runtime: Runtime) -> bool:
    provider = find_provider(model)
    return provider is not None and any(runtime.environ.get(key) for key in provider.keys)
