"""The frame around the prompt box, on the start screen and the chat screen."""

from __future__ import annotations

from textual.containers import Horizontal
from textual.widgets import Static, TextArea


class PromptFrame(Horizontal):
    """A border around the prompt box, with a mark before it."""

    # not in a file of its own: reading one takes milliseconds before the first paint
    DEFAULT_CSS = """
    PromptFrame {
        height: auto; margin: 0 1; padding: 0 1;
        border: round $primary 60%; background: $background;
    }
    PromptFrame:focus-within { border: round $primary; }
    PromptFrame > .mark { width: 2; height: 1; color: $primary; text-style: bold; }
    """

    def __init__(self, box: TextArea) -> None:
        super().__init__(Static("❯", classes="mark"), box)
