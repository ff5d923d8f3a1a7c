"""The base class of dialogs: a frame with its title at the top and its keys at the bottom."""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Result = TypeVar("Result")


class FramedScreen(ModalScreen[Result]):
    """A modal screen whose one `Vertical` is drawn as a frame; each subclass sets its size."""

    DEFAULT_CSS = """
    FramedScreen { align: center middle; }
    FramedScreen > Vertical {
        border: round $primary; border-title-color: $primary; border-title-style: bold;
        border-subtitle-color: $foreground; background: $surface; padding: 0 1;
    }
    """

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen; do nothing unless it is the top one.

        Keys typed fast may arrive after the one that closed it; Textual would then close the screen below.
        """
        if self.app.screen_stack[-1:] != [self]:
            return AwaitComplete()
        return super().dismiss(result)

    async def on_event(self, event: events.Event) -> None:
        """Skip mount and resize events once this screen is closed: it may have no widgets yet."""
        if isinstance(event, events.Mount | events.Resize) and self not in self.app.screen_stack:
            return
        await super().on_event(event)
