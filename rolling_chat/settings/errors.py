"""What goes wrong with settings, apart from their schema: catching it needs none of that."""

from __future__ import annotations


class SettingsError(Exception):
    """A setting that cannot be used; `str()` is the one line for the user."""
