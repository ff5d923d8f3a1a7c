"""Textual's own way: a text area, a footer, and `Markdown` fed by `MarkdownStream`."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Footer, Markdown, TextArea

from tests.benchmarks.screen.pace import Pace, Script


class BareStreamApp(App[None]):
    """Streams its script when Enter is pressed."""

    CSS = "TextArea { height: 5; }"
    BINDINGS = [Binding("enter", "answer", "Answer", priority=True)]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        """The answer, what takes keys, and the keys."""
        with VerticalScroll(can_focus=False):
            yield Markdown()
        yield TextArea()
        yield Footer()

    def on_mount(self) -> None:
        """Keys go to the text area; the answer is followed."""
        self.query_one(TextArea).focus()
        self.query_one(VerticalScroll).anchor()

    def action_answer(self) -> None:
        """Begin."""
        self.run_worker(self._answer())

    async def _answer(self) -> None:
        stream = Markdown.get_stream(self.query_one(Markdown))
        async for delta in Pace(Script.read()).deltas():
            await stream.write(delta)
        await stream.stop()


if __name__ == "__main__":
    BareStreamApp().run()
