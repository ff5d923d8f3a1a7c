"""Where sessions are saved: in a local file of the user, or in the store that the settings name."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings


def store_place(settings: Settings, paths: Paths) -> str | Path:
    """Return the address of the store that the settings name, or else the local file."""
    return settings.sessions.store or paths.database


def is_begun(place: str | Path) -> bool:
    """Return whether there may be sessions: yes, unless the local file does not exist."""
    return isinstance(place, str) or place.exists()
