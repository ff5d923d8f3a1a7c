"""Sign-in methods for clients: variables to set, or a login in a terminal."""

from __future__ import annotations

import os

from acp import RequestError
from acp.schema import AuthEnvVar, AuthMethodAgent, ClientCapabilities, EnvVarAuthMethod, TerminalAuthMethod

from rolling_chat.acp.codes import AUTH_REQUIRED, INVALID_PARAMS
from rolling_chat.providers.known_providers import KNOWN_PROVIDERS, OWN_CREDENTIALS, KnownProvider
from rolling_chat.providers.stored_keys import StoredKeys
from rolling_chat.settings.paths import find_paths
from rolling_chat.text import one_line

LOGIN = "login"
_BY_KEY = "key-"

Methods = list[EnvVarAuthMethod | TerminalAuthMethod | AuthMethodAgent]


def methods_for(capabilities: ClientCapabilities | None) -> Methods:
    """Return the sign-in methods that a client can offer; the terminal's only if the client has one."""
    methods: Methods = []
    if capabilities is not None and capabilities.auth is not None and capabilities.auth.terminal:
        text = "Asks for a provider and its key in a terminal."
        name = "Store an API key in the keyring"
        methods.append(
            TerminalAuthMethod(type="terminal", id=LOGIN, name=name, description=text, args=["--login"])
        )
    methods.extend(map(_by_variable, _with_one_key()))
    return methods


def _by_variable(provider: KnownProvider) -> EnvVarAuthMethod:
    key, name = provider.keys[0], f"API key of {provider.name}"
    return EnvVarAuthMethod(
        type="env_var",
        id=f"{_BY_KEY}{provider.name}",
        name=name,
        description=f"Set {key} in the client's settings of this agent.",
        vars=[AuthEnvVar(name=key, label=name)],
    )


def require_key(method: str) -> None:
    """Raise RequestError unless there is a key now, of the provider that the method names, if any."""
    environ, lines = StoredKeys(find_paths(os.environ).logins_file).added_to(os.environ)
    providers = [one for one in _with_one_key() if method in (LOGIN, f"{_BY_KEY}{one.name}")]
    if not providers:
        raise RequestError(INVALID_PARAMS, f"There is no method {one_line(method, 60)!r} to sign in.")
    if any(provider.key_in(environ) for provider in providers):
        return
    raise RequestError(AUTH_REQUIRED, " ".join([*lines, _missing(providers)]))


def _missing(providers: list[KnownProvider]) -> str:
    if len(providers) > 1:
        return "No key is stored yet: run `rolling-chat login PROVIDER` in a terminal."
    key = providers[0].keys[0]
    return f"{key} is not set: set it in the client's settings of this agent, then start the agent again."


def _with_one_key() -> list[KnownProvider]:
    """Return the providers for which a single key is enough."""
    return [
        one for one in KNOWN_PROVIDERS if one.first_model and one.keys and one.name not in OWN_CREDENTIALS
    ]
