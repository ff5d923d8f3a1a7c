"""The errors of the agent, for display to the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rolling_chat.providers.protocol import ProviderError
from rolling_chat.sessions.records import StoreError
from rolling_chat.settings.errors import SettingsError
from rolling_chat.tools import ToolError


class ChatError(Exception):
    """An operation that failed or was refused, explained in one line for the user."""


class NoModelError(ChatError):
    """No model was chosen: none was named, and no key or server determines one."""


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """Convert errors of the store, a provider, the settings or a tool to ChatError."""
    try:
        yield
    except (ProviderError, SettingsError, StoreError, ToolError) as error:
        raise ChatError(str(error)) from error
