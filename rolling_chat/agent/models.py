"""Choose the model that answers and the address of its server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rolling_chat.agent.errors import ChatError, NoModelError
from rolling_chat.agent.request.model_limits import is_window_assumed, window_of
from rolling_chat.providers.addresses import (
    PROVIDERS_OWN,
    address_in,
    describe_server,
    is_same_provider,
    with_credentials,
    without_credentials,
)
from rolling_chat.providers.discovery import ModelChoice, check_model, choose_model
from rolling_chat.providers.model_ref import ModelRef, missing_keys
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.setting_rules import is_address

if TYPE_CHECKING:
    from rolling_chat.agent.runtime import Runtime


def pick_model(
    runtime: Runtime,
    model: str,
    session: SessionInfo | None,
    *,
    address: str = "",
    allow_fallback: bool = True,
    former: Mapping[str, str | None] = MappingProxyType({}),
) -> ModelChoice:
    """Return the model asked for, or else the session's own, or else that of settings and environment.

    `address` is as the user gave it ("default": the provider's own); if it is empty, the session's addresses
    are used, including `former` ones. Raises ProviderError (MODEL_UNKNOWN, with similar names) for an unknown
    model, and NoModelError without `allow_fallback` if no model was chosen.
    """
    if not model and session is not None and session.model:
        choice = ModelChoice(session.model, "this session")
    else:
        choice = choose_model(runtime.settings, runtime.environ, model=model)
        if choice.is_fallback and not allow_fallback:
            raise NoModelError(
                "no model was chosen: no key in the environment, no local Ollama; give one with --model, or "
                "--model demo/offline for the built-in demo"
            )
        if choice.model not in runtime.settings.models:
            check_model(choice.model, runtime.catalog)
    if address:
        return replace(choice, address=as_stored(address))
    found = address_of(runtime, choice.model, session, former)
    return replace(choice, address=as_stored(found) if found else found)


def as_stored(address: str) -> str:
    """Return the user's address in the form that sessions store. Raises ChatError if it is not valid."""
    if address == PROVIDERS_OWN:
        return ""
    if not is_address(address):
        shown = address.rpartition("@")[2]  # hides a password
        raise ChatError(f"{shown!r} is no address: it begins with http:// or https://, then comes a host")
    return without_credentials(address)


def address_of(
    runtime: Runtime,
    model: str,
    session: SessionInfo | None,
    former: Mapping[str, str | None] = MappingProxyType({}),
) -> str | None:
    """Return the address for `model` in `session`: empty for the provider's own, None if unknown.

    A model that the session has, or had before, keeps its address, whatever settings and environment say now:
    `former` has the addresses of earlier models, the last one last. Another model of the same provider uses
    the same address, unless the settings have one for that very model.
    """
    used = dict(former)
    if session is not None and session.model:
        used.pop(session.model, None)
        used[session.model] = session.api_base
    if ModelRef.parse(model).is_demo:
        return ""
    if model in used:
        return used[model]
    if configured := runtime.settings.for_model(model).api_base:
        return without_credentials(configured)
    for known, address in reversed(used.items()):
        if is_same_provider(known, model):
            return address
    return without_credentials(address_in(runtime.environ, model))


def call_address(runtime: Runtime, model: str, address: str | None) -> str | None:
    """Return `address` for a request, with the credentials that the user gave for it, if any."""
    if not address:
        return None
    configured = (one.api_base for one in runtime.settings.models.values())
    return with_credentials(address, (runtime.api_base, *configured, address_in(runtime.environ, model)))


def known_addresses(runtime: Runtime, model: str) -> Mapping[str, str]:
    """Return the possible addresses of `model`, as a user types them, each with a description.

    They are those of the settings, of the environment and of the provider.
    """
    found = (runtime.settings.for_model(model).api_base, address_in(runtime.environ, model))
    return {one: without_credentials(one) for one in found if one} | {
        PROVIDERS_OWN: describe_server(model, "")
    }


def missing_key_line(runtime: Runtime, model: str, address: str | None) -> str:
    """Return a line that names the key that a model lacks; empty if it lacks none."""
    missing = missing_keys(model, address or "", runtime.environ)
    return f"No key for {ModelRef.parse(model).served_by}: set {' or '.join(missing)}." if missing else ""


def model_warnings(runtime: Runtime, model: str, address: str | None) -> Iterator[str]:
    """Yield a line for each thing that a model lacks: a key, or a window that is or will become known."""
    if line := missing_key_line(runtime, model, address):
        yield line
    if not runtime.server_facts.is_due(model, address) and (line := window_line(runtime, model, address)):
        yield line


def window_line(runtime: Runtime, model: str, address: str | None) -> str:
    """Return a line that says that the window of a model is only assumed; empty if it is known."""
    is_known = runtime.server_facts.window(model, address)
    if is_known or not is_window_assumed(model, runtime.settings, runtime.catalog):
        return ""
    window = window_of(model, runtime.settings, runtime.catalog)
    return (
        f"The window of {model} is not known: {window:,} tokens are assumed. "
        f'Set max_input_tokens under [models."{model}"].'
    )


def unknown_address_line(model: str) -> str:
    """Return the line for a session that does not know the address of its model."""
    own = describe_server(model, "")
    return (
        f"this session does not know the address of {model}: it is from an older version, or "
        f"somebody else chose it; give it with --api-base URL, or --api-base {PROVIDERS_OWN} for {own}"
    )
