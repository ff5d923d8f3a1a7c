"""`rolling-chat login` and `logout`: API keys in the system's keyring, never in a file."""

from __future__ import annotations

import getpass
import sys

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.providers.known_providers import KNOWN_PROVIDERS, OWN_CREDENTIALS, KnownProvider
from rolling_chat.providers.stored_keys import KeyringError, StoredKeys
from rolling_chat.settings.paths import Paths

_MAX_KEY = 10_000  # characters


def run_login(options: Options, paths: Paths) -> int:
    """Ask for a provider's key and store it; without one, list those stored. Raises Failure."""
    stored = StoredKeys(paths.logins_file)
    if not options.provider:
        print("\n".join(stored.providers()) or "No key is stored; rolling-chat login PROVIDER stores one.")
        return Exit.DONE
    provider = _provider(options.provider)
    key = _read_key(provider)
    try:
        stored.store(provider, key)
    except KeyringError as error:
        raise Failure(f"the key was not stored: {error}") from error
    print(
        f"The key of {provider.name} is in the keyring. {provider.keys[0]} in the environment wins over it."
    )
    return Exit.DONE


def run_logout(options: Options, paths: Paths) -> int:
    """Delete a provider's key from the keyring. Raises Failure."""
    stored, provider = StoredKeys(paths.logins_file), _provider(options.provider)
    if provider.name not in stored.providers():
        raise Failure(f"no key of {provider.name} is stored", Exit.USAGE)
    try:
        stored.delete(provider)
    except KeyringError as error:
        raise Failure(f"the key was not deleted: {error}") from error
    print(f"The key of {provider.name} is no longer in the keyring.")
    return Exit.DONE


def _provider(name: str) -> KnownProvider:
    having_keys = [one for one in KNOWN_PROVIDERS if one.keys and one.name not in OWN_CREDENTIALS]
    for provider in having_keys:
        if provider.name == name:
            return provider
    names = ", ".join(provider.name for provider in having_keys)
    raise Failure(f"no key can be stored for {name!r}; the providers are: {names}", Exit.USAGE)


def _read_key(provider: KnownProvider) -> str:
    """Read the key from the terminal, without echo, or from a pipe. Raises Failure."""
    if sys.stdin is not None and sys.stdin.isatty():
        try:
            given = getpass.getpass(f"Key of {provider.name} (it is not shown): ")
        except EOFError:
            given = ""
    else:
        given = sys.stdin.readline(_MAX_KEY + 1) if sys.stdin is not None else ""
    key = given.strip()
    if not key:
        raise Failure("no key was given; nothing was stored", Exit.USAGE)
    if len(key) > _MAX_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise Failure("that is not an API key: it has spaces or characters that keys do not have", Exit.USAGE)
    return key
