"""What MCP servers know the user by: tokens, kept in the system's keyring or in a private file."""

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
    """The tokens of servers by their addresses: in the keyring where it can be used, else in `file`.

    The file is private; of a token in the keyring it has only that it is there, so that nothing asks the
    keyring for one that is not.
    """

    file: Path

    def get(self, url: str) -> Mapping[str, Json]:
        """Return what is kept for a server; nothing where there is nothing, or it cannot be read."""
        kept = self._read().get(url)
        if kept == _IN_KEYRING:
            try:
                kept = json.loads(_keyring().get_password(_SERVICE, url) or "{}")
            except Exception as error:  # backends raise what their system's libraries do
                log.warning("the keyring was not read: %s", type(error).__name__)
                return {}
        return kept if isinstance(kept, dict) else {}

    def has(self, url: str) -> bool:
        """Return whether anything is kept for a server; the keyring is not asked."""
        return url in self._read()

    def put(self, url: str, kept: Mapping[str, Json]) -> None:
        """Keep something else for a server. Raises SettingsError where it can be kept nowhere."""
        try:
            _keyring().set_password(_SERVICE, url, json.dumps(kept))
        except Exception:  # no keyring, or one that cannot be used
            self._write({**self._read(), url: dict(kept)})
        else:
            self._write({**self._read(), url: _IN_KEYRING})

    def forget(self, url: str) -> bool:
        """Delete what is kept for a server; return whether there was anything. Raises SettingsError."""
        kept = self._read()
        if url not in kept:
            return False
        if kept.pop(url) == _IN_KEYRING:
            with contextlib.suppress(Exception):  # somebody else took it out
                _keyring().delete_password(_SERVICE, url)
        self._write(kept)
        return True

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self, kept: Mapping[str, Any]) -> None:
        replace_file(self.file, json.dumps(kept))  # a new file is private


def _keyring() -> Any:
    keyring = importlib.import_module("keyring")
    # the backend of a system without one takes everything and keeps nothing, or raises
    if keyring.get_keyring().priority <= 0:
        raise RuntimeError("no keyring")
    return keyring
