"""Which model answers, at which address, and which others could."""

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
    is_same_provider,
    place_of,
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
    """Return the model asked for, else the session's own, else what settings and environment choose.

    `address` is as the user gave it ("default": the provider's own), else the session's own counts, `former`
    addresses of it included.
    Raises ProviderError (MODEL_UNKNOWN, with the nearest names) for a name that nobody serves, and
    NoModelError without `allow_fallback` where nothing chose a model.
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
        return replace(choice, address=as_kept(address))
    found = address_of(runtime, choice.model, session, former)
    return replace(choice, address=as_kept(found) if found else found)


def as_kept(address: str) -> str:
    """Return an address that the user gave as a session keeps it. Raises ChatError for what is none."""
    if address == PROVIDERS_OWN:
        return ""
    if not is_address(address):
        shown = address.rpartition("@")[2]  # a password is not shown
        raise ChatError(f"{shown!r} is no address: it begins with http:// or https://, then comes a host")
    return without_credentials(address)


def address_of(
    runtime: Runtime,
    model: str,
    session: SessionInfo | None,
    former: Mapping[str, str | None] = MappingProxyType({}),
) -> str | None:
    """Return the address for `model` in `session`: empty for the provider's own, None where unknown.

    A session's model stays where it is, whatever settings and environment say by now, and comes back to where
    it was: `former` has the addresses of models that the session had before, the last one last. Another model
    of the same provider goes where these go, unless the settings have an address for that very model.
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
    """Return `address` as a request needs it, with the credentials that the user gave for it, if any."""
    if not address:
        return None
    configured = (one.api_base for one in runtime.settings.models.values())
    return with_credentials(address, (runtime.api_base, *configured, address_in(runtime.environ, model)))


def known_addresses(runtime: Runtime, model: str) -> Mapping[str, str]:
    """Return the addresses that `model` may have, as a user gives them, each with where that is.

    They are the settings', the environment's and the provider's own.
    """
    found = (runtime.settings.for_model(model).api_base, address_in(runtime.environ, model))
    return {one: without_credentials(one) for one in found if one} | {PROVIDERS_OWN: place_of(model, "")}


def missing_key_line(runtime: Runtime, model: str, address: str | None) -> str:
    """Return a line where a model needs a key and there is none, else an empty one."""
    missing = missing_keys(model, address or "", runtime.environ)
    return f"No key for {ModelRef.parse(model).served_by}: set {' or '.join(missing)}." if missing else ""


def model_warnings(runtime: Runtime, model: str, address: str | None) -> Iterator[str]:
    """Yield a line for each thing that a model lacks: a key, a window that is known or can be asked for."""
    if line := missing_key_line(runtime, model, address):
        yield line
    if not runtime.server_facts.is_due(model, address) and (line := window_line(runtime, model, address)):
        yield line


def window_line(runtime: Runtime, model: str, address: str | None) -> str:
    """Return a line where the window of a model is only assumed, else an empty one."""
    is_known = runtime.server_facts.window(model, address)
    if is_known or not is_window_assumed(model, runtime.settings, runtime.catalog):
        return ""
    window = window_of(model, runtime.settings, runtime.catalog)
    return (
        f"The window of {model} is not known: {window:,} tokens are assumed. "
        f'Set max_input_tokens under [models."{model}"].'
    )


def unknown_address_line(model: str) -> str:
    """Return the line for a session that does not know where its requests go."""
    own = place_of(model, "")
    return (
        f"this session does not know the address of {model}: it is from an older version, or "
        f"somebody else chose it; give it with --api-base URL, or --api-base {PROVIDERS_OWN} for {own}"
    )
