"""The user's logins to MCP servers: tokens, stored in the system's keyring or in a private file."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolling_chat.messages import Json
from rolling_chat.settings.toml_file import replace_file

log = logging.getLogger("rolling_chat.tools.mcp")

_SERVICE = "rolling-chat-mcp"
_IN_KEYRING = "keyring"


@dataclass(frozen=True, slots=True)
class McpLogins:
    """The tokens of servers by their addresses: in the keyring if it is usable, else in `file`.

    The file is private. For a token in the keyring, it only records that it exists, so that the keyring is
    not asked for others.
    """

    file: Path

    def get(self, url: str) -> Mapping[str, Json]:
        """Return the login to a server; empty if there is none or it cannot be read."""
        login = self._read().get(url)
        if login == _IN_KEYRING:
            try:
                login = json.loads(_keyring().get_password(_SERVICE, url) or "{}")
            except Exception as error:  # backends raise the errors of their system's libraries
                log.warning("the keyring was not read: %s", type(error).__name__)
                return {}
        return login if isinstance(login, dict) else {}

    def has(self, url: str) -> bool:
        """Return whether there is a login to a server, without asking the keyring."""
        return url in self._read()

    def put(self, url: str, login: Mapping[str, Json]) -> None:
        """Store the login to a server. Raises SettingsError if it cannot be stored."""
        try:
            _keyring().set_password(_SERVICE, url, json.dumps(login))
        except Exception:  # no keyring, or one that cannot be used
            self._write({**self._read(), url: dict(login)})
        else:
            self._write({**self._read(), url: _IN_KEYRING})

    def forget(self, url: str) -> bool:
        """Delete the login to a server; return whether there was one. Raises SettingsError."""
        logins = self._read()
        if url not in logins:
            return False
        if logins.pop(url) == _IN_KEYRING:
            with contextlib.suppress(Exception):  # it may have been removed by others
                _keyring().delete_password(_SERVICE, url)
        self._write(logins)
        return True

    def _read(self) -> dict[str, Any]:
        try:
            logins = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return logins if isinstance(logins, dict) else {}

    def _write(self, logins: Mapping[str, Any]) -> None:
        replace_file(self.file, json.dumps(logins))  # a new file is private


def _keyring() -> Any:
    keyring = importlib.import_module("keyring")
    # on a system without a keyring, the backend discards everything, or raises
    if keyring.get_keyring().priority <= 0:
        raise RuntimeError("no keyring")
    return keyring
