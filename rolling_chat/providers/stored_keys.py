"""API keys in the system's keyring: macOS's Keychain, the Secret Service, Windows's Credential Locker.

Which providers have one is kept in a list without secrets, so that nothing asks the keyring where there is
none: importing its package takes 0.15 seconds, and it may ask the user to unlock it.
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
    """The keyring cannot be used; the text says why, in a line."""


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The keys in the system's keyring; `index` is the file that lists whose they are."""

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
        """Put a key into the keyring in place of the one before. Raises KeyringError."""
        keyring = _keyring()
        with _in_words(keyring):
            keyring.set_password(_SERVICE, provider.name, key)
            self._list({*self.providers(), provider.name})

    def delete(self, provider: KnownProvider) -> None:
        """Take a key out of the keyring, if it is there. Raises KeyringError."""
        keyring = _keyring()
        with _in_words(keyring):
            with contextlib.suppress(keyring.errors.PasswordDeleteError):  # somebody else took it out
                keyring.delete_password(_SERVICE, provider.name)
            self._list({*self.providers()} - {provider.name})

    def added_to(self, environ: Mapping[str, str]) -> tuple[KeyedEnvironment, list[str]]:
        """Return `environ` with stored keys where it has none of a provider, and lines on what failed."""
        found, lines = KeyedEnvironment(environ), list[str]()
        names = self.providers()
        for provider in KNOWN_PROVIDERS:
            if provider.name not in names or not provider.keys or provider.key_in(environ):
                continue
            try:
                keyring = _keyring()
                with _in_words(keyring):
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
def _in_words(keyring: Any) -> Iterator[None]:
    """Raise what a backend raises as KeyringError."""
    try:
        yield
    except KeyringError:
        raise
    except keyring.errors.NoKeyringError as error:
        raise KeyringError("this system has no keyring that can be used") from error
    except Exception as error:  # backends raise what their system's libraries do
        raise KeyringError(one_line(f"{type(error).__name__}: {error}", 200)) from error
