"""Where sessions are saved: in a file of this user's, or where the settings say."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings


def store_place(settings: Settings, paths: Paths) -> str | Path:
    """Return the address of the store that the settings name, else its file on this machine."""
    return settings.sessions.store or paths.database


def is_begun(place: str | Path) -> bool:
    """Return whether there may be sessions: a file that is not there has none."""
    return isinstance(place, str) or place.exists()
