"""How an open session says no."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rolling_chat.providers.protocol import ProviderError
from rolling_chat.sessions.records import StoreError
from rolling_chat.settings.errors import SettingsError
from rolling_chat.tools import ToolError


class ChatError(Exception):
    """An operation that cannot be done, explained in one line for the user."""


class NoModelError(ChatError):
    """No model answers: none was named, and no key and no server chooses one."""


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """Raise the errors of the store, a provider or a tool as ChatError, in one line."""
    try:
        yield
    except (ProviderError, SettingsError, StoreError, ToolError) as error:
        raise ChatError(str(error)) from error
