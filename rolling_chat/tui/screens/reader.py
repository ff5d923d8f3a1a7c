"""The reading part of the chat screen: scrolling, finding, selecting and copying in the transcript."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.geometry import Offset, clamp
from textual.screen import Screen
from textual.widget import Widget

from rolling_chat.tui.controllers.find_controller import FindController
from rolling_chat.tui.controllers.links import ask_and_open
from rolling_chat.tui.controllers.reading import ReadingController
from rolling_chat.tui.widgets.find import FindBar
from rolling_chat.tui.widgets.keys import bindings_of
from rolling_chat.tui.widgets.prompt_box import PromptBox
from rolling_chat.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from textual.worker import Worker

    from rolling_chat.agent import Chat
    from rolling_chat.tui.controllers.background import Work
    from rolling_chat.tui.controllers.commands import Shell
    from rolling_chat.tui.state.screen_state import ScreenState

_LOST = "The conversation was loaded anew while it was copied: nothing was copied."


class ReaderScreen(Screen[None]):
    """A screen with a transcript that can be read and searched by keys, a find bar and a prompt box."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("reader")]

    chat: Chat
    state: ScreenState

    def __init__(self) -> None:
        super().__init__()
        self.finding = FindController(self)
        self.reading = ReadingController(self)

    @property
    def transcript(self) -> Transcript:
        """The transcript."""
        return self.query_one(Transcript)

    @property
    def prompt(self) -> PromptBox:
        """The prompt box."""
        return self.query_one(PromptBox)

    @property
    def find_bar(self) -> FindBar:
        """The row in which search words are typed."""
        return self.query_one(FindBar)

    def default_focus(self) -> Widget:
        """Return the default focus, used while nothing is read or searched."""
        return self.prompt

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now; an open find bar keeps them."""
        if self.finding.is_open and self.focused is not self.prompt:
            self.find_bar.take_keys()
            return
        owner = self.default_focus()
        if self.reading.is_on and owner is self.prompt:
            owner = self.transcript
        self.set_focus(owner, scroll_visible=False)

    def copy(self, text: str) -> bool:
        """Copy `text` to the clipboard; return whether it got there, and if not, show why."""
        return cast("Shell", self.app).copied(text)

    def copies_later(self, copy: Callable[[str], object]) -> bool:
        """Copy a long selection in the background; return False for one that is available at once."""

        def taken(text: str | None) -> None:
            if text is not None:
                copy(text)
                return
            self.state.notice(_LOST, warning=True)

        return self.transcript.takes_long(taken)

    def work(self, work: Work) -> Worker[None]:
        """Run `work` in the background; an unexpected exception in it ends the program."""

        async def done() -> None:
            try:
                await work()
            except NoMatches:
                if self.app.is_running:  # during shutdown, widgets may be gone already
                    raise

        return self.run_worker(done, exit_on_error=True)

    # -- keys and clicks

    def action_move(self, how: str, step: int) -> None:
        """Scroll the transcript, and move the cursor along while it is read."""
        self.reading.move_by(how, step)

    def action_find(self) -> None:
        """Open the find bar."""
        self.finding.open()

    def action_read(self) -> None:
        """Start or end reading the transcript by keys."""
        self.reading.begin()

    @on(Transcript.LinkClicked)
    def _link_clicked(self, event: Transcript.LinkClicked) -> None:
        self.work(partial(ask_and_open, self, event.address))

    @on(FindBar.Changed)
    def _find(self, event: FindBar.Changed) -> None:
        self.finding.search_for(event.words)

    @on(FindBar.Stepped)
    def _find_more(self, event: FindBar.Stepped) -> None:
        self.finding.step(event.step)

    @on(FindBar.Closed)
    def _found(self) -> None:
        self.finding.close()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """End reading and the history search when another widget gets the focus."""
        self.reading.focus_moved(event.widget)
        if event.widget is not self.prompt:
            self.prompt.end_search()
        self.state.changed()

    def on_paste(self, event: events.Paste) -> None:
        """While the transcript is read by keys, insert the pasted text in the prompt box."""
        self.reading.pasted(event.text)

    # -- selecting with the mouse

    def _update_select(self) -> None:
        """Update the selection after scrolling, for the text now under a mouse that did not move."""
        state = self._select_state
        if state is not None and state.end is not None:
            widget, offset = self.get_widget_and_offset_at(*state.screen_offset)
            if offset is not None and widget is state.end.content_widget:
                self._select_state = state.update_end(
                    state.screen_offset, state.end._replace(content_offset=offset)
                )
        super()._update_select()

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return what is under the mouse, keeping a selection of the transcript within it."""
        return super().get_widget_and_offset_at(*self._kept_in(x, y))

    def _check_auto_scroll(
        self, select_widget: Widget, mouse_coordinate: tuple[float, float], delta_y: float
    ) -> None:
        """Scroll while the mouse is beyond the transcript's edge, as at the edge."""
        super()._check_auto_scroll(select_widget, self._kept_in(*map(int, mouse_coordinate)), delta_y)

    def _kept_in(self, x: int, y: int) -> tuple[int, int]:
        state = self._select_state
        if not self._selecting or state is None or not isinstance(state.start.content_widget, Transcript):
            return x, y
        region = state.start.content_widget.scrollable_content_region
        return clamp(x, region.x, region.right - 1), clamp(y, region.y, region.bottom - 1)
