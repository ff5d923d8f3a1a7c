"""Keyboard focus: some widget of the current screen always has it.

Textual clears the focus on a mouse event outside the screen, when the terminal loses its own focus, and when
the focused widget is removed; keys typed then would be lost silently.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from textual.screen import Screen
from textual.widget import Widget


@runtime_checkable
class FocusOwner(Protocol):
    """A screen that knows which of its widgets should have the focus."""

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now."""


def keep_focus(screen: Screen[Any], before: Widget | None = None) -> None:
    """If no widget of `screen` has the focus, restore it to `before` or else to the screen's own choice."""
    if screen.focused is not None or not screen.is_mounted:
        return
    if before is not None and before.focusable and before in screen.focus_chain:
        screen.set_focus(before, scroll_visible=False)
    elif isinstance(screen, FocusOwner):
        screen.take_focus()
    else:
        screen.focus_next()
