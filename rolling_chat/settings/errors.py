"""The error of the settings, in a module of its own so that catching it does not load the schema."""

from __future__ import annotations


class SettingsError(Exception):
    """A setting that cannot be used; the text is one line for the user."""
