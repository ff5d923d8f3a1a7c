"""Store API keys in the system's keyring: macOS's Keychain, the Secret Service, Windows's Credential Locker.

A list without secrets records which providers have a key, so that the keyring is not used if there is none:
importing its package takes 0.15 seconds, and it may ask the user to unlock it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolling_chat.providers.known_providers import KNOWN_PROVIDERS, KeyedEnvironment, KnownProvider
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.toml_file import replace_file
from rolling_chat.text import one_line

_SERVICE = "rolling-chat"
_NOT_INSTALLED = "the keyring package is not installed: pip install 'rolling-chat[keyring]'"


class KeyringError(Exception):
    """Raised, with a reason in one line, when the keyring cannot be used."""


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The keys in the system's keyring; `index` is the file that lists their providers."""

    index: Path

    def providers(self) -> list[str]:
        """Return the names of the providers that have a stored key."""
        try:
            names = json.loads(self.index.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return []
        known = {provider.name for provider in KNOWN_PROVIDERS}
        return [name for name in names if name in known] if isinstance(names, list) else []

    def store(self, provider: KnownProvider, key: str) -> None:
        """Store a key in the keyring, replacing an earlier one. Raises KeyringError."""
        keyring = _keyring()
        with _keyring_errors(keyring):
            keyring.set_password(_SERVICE, provider.name, key)
            self._list({*self.providers(), provider.name})

    def delete(self, provider: KnownProvider) -> None:
        """Delete a key from the keyring, if it is there. Raises KeyringError."""
        keyring = _keyring()
        with _keyring_errors(keyring):
            with contextlib.suppress(keyring.errors.PasswordDeleteError):  # it was already deleted elsewhere
                keyring.delete_password(_SERVICE, provider.name)
            self._list({*self.providers()} - {provider.name})

    def added_to(self, environ: Mapping[str, str]) -> tuple[KeyedEnvironment, list[str]]:
        """Return `environ` plus stored keys of providers without a key, and lines about failures."""
        found, lines = KeyedEnvironment(environ), list[str]()
        names = self.providers()
        for provider in KNOWN_PROVIDERS:
            if provider.name not in names or not provider.keys or provider.key_in(environ):
                continue
            try:
                keyring = _keyring()
                with _keyring_errors(keyring):
                    key = keyring.get_password(_SERVICE, provider.name)
            except KeyringError as error:
                lines.append(f"The stored key of {provider.name} was not read: {error}.")
                continue
            if key:
                found[provider.keys[0]] = key
                found.stored.add(provider.keys[0])
        return found, lines

    def _list(self, names: set[str]) -> None:
        try:
            replace_file(self.index, json.dumps(sorted(names)))
        except SettingsError as error:
            raise KeyringError(str(error)) from error


def _keyring() -> Any:
    try:
        return importlib.import_module("keyring")
    except ImportError as error:
        raise KeyringError(_NOT_INSTALLED) from error


@contextlib.contextmanager
def _keyring_errors(keyring: Any) -> Iterator[None]:
    """Convert a backend's exceptions to KeyringError."""
    try:
        yield
    except KeyringError:
        raise
    except keyring.errors.NoKeyringError as error:
        raise KeyringError("this system has no keyring that can be used") from error
    except Exception as error:  # backends raise the exceptions of their system's libraries
        raise KeyringError(one_line(f"{type(error).__name__}: {error}", 200)) from error
