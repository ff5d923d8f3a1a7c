"""The floor: a Textual app with a text area and a footer, and nothing else."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Footer, TextArea


class BareApp(App[None]):
    """Takes keys."""

    BINDINGS = [("ctrl+q", "quit", "Quit")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        """The two."""
        yield TextArea()
        yield Footer()


if __name__ == "__main__":
    BareApp().run()
