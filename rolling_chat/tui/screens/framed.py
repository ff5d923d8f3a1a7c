"""What every screen that opens over the chat looks like: a frame with its title above, its keys below."""

from __future__ import annotations

from typing import TypeVar

from textual.screen import ModalScreen

Result = TypeVar("Result")


class FramedScreen(ModalScreen[Result]):
    """A modal screen whose one `Vertical` is the frame; how large it is, the screen says."""

    DEFAULT_CSS = """
    FramedScreen { align: center middle; }
    FramedScreen > Vertical {
        border: round $primary; border-title-color: $primary; border-title-style: bold;
        border-subtitle-color: $foreground; background: $surface; padding: 0 1;
    }
    """
