"""The inspector: the next request message by message, to pin and exclude messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from rolling_chat.agent import Chat, ChatError, PinChange
from rolling_chat.commands.pinning import done_line, price_line
from rolling_chat.text import one_line
from rolling_chat.tui.dialogs.tables_screen import TablesScreen
from rolling_chat.tui.widgets.row_table import RowTable

if TYPE_CHECKING:
    from rolling_chat.commands.base import Inspection
    from rolling_chat.context.report import PromptReport

_FOLLOW_EVERY = 0.5  # seconds


class InspectorScreen(TablesScreen):
    """A screen that shows the next request by message.

    `read` returns its contents, `report` the newest report.

    `p` pins or unpins the row under the cursor, `x` excludes or includes it. The first press shows the
    price, the second makes the change and passes a line about it to `changed`.
    """

    KEYS: ClassVar[str] = "p pin · x exclude · tab next table · esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "weigh('p')", show=False),
        Binding("x", "weigh('x')", show=False),
        Binding("enter", "agree", show=False, priority=True),
        Binding("escape,ctrl+c", "leave", show=False),
    ]
    DEFAULT_CSS = """
    InspectorScreen #price { height: auto; min-height: 1; margin-top: 1; color: $warning; }
    """

    def __init__(
        self,
        chat: Chat,
        read: Callable[[], Inspection],
        report: Callable[[], PromptReport],
        changed: Callable[[str], None],
    ) -> None:
        self._read = read
        self._newest = report
        self._inspection = read()
        super().__init__("The next request", self._inspection.lead, self._inspection.tables)
        self._chat = chat
        self._report = report()
        self._changed = changed
        self._offered: tuple[PinChange, int] | None = None  # with the message's index

    def on_mount(self) -> None:
        """Add a line for the price, and poll for changes of the request."""
        super().on_mount()
        self.query_one(Vertical).mount(Static("", id="price"))
        self.set_interval(_FOLLOW_EVERY, self._follow)

    def action_weigh(self, key: str) -> None:
        """Show the price of pinning or excluding the row, or of undoing that; pressed again, do it."""
        index = self._place
        if not index:
            self._say("The system message always stays.")
            return
        if self._is_gone(index):
            return
        change = self._change(key, index)
        if self._offered == (change, index):
            self.action_agree()
            return
        self._offered = None
        try:
            price = self._chat.session.pins.price(change, f"r{index}")
        except ChatError as error:
            self._say(str(error))
            return
        self._offered = (change, index)
        self._say(f"{change.capitalize()} {price_line(price)} · {key} or enter does it, esc cancels")

    def action_agree(self) -> None:
        """Make the change whose price is shown; without one, close the screen."""
        if self._offered is None:
            self.dismiss()
            return
        (change, index), self._offered = self._offered, None
        if self._is_gone(index):
            return
        try:
            line = done_line(self._chat.session.pins.make(change, f"r{index}"))
        except ChatError as error:
            self._say(str(error))
            return
        self._changed(line)
        self._redraw()
        self._say(line)

    def action_leave(self) -> None:
        """Cancel the change whose price is shown; without one, close the screen."""
        if self._offered is None:
            self.dismiss()
        self._offered = None
        self._say("")

    @on(RowTable.Moved, ".last")
    def _moved(self) -> None:
        if self._offered is not None and self._place != self._offered[1]:
            self._offered = None
            self._say("")

    @property
    def _place(self) -> int:
        """The index of the message under the cursor; 0 for the system message."""
        indexes, row = self._inspection.indexes, self.query(RowTable).last().cursor_row
        return indexes[row] if 0 <= row < len(indexes) else 0

    def _is_gone(self, index: int) -> bool:
        """Return whether the branch now has another message at `index`; if so, redraw and report it."""
        messages, read = self._chat.session.messages, self._report.rows
        if index <= len(messages) and messages[index - 1].id == read[index].id:
            return False
        self._offered = None
        self._redraw()
        self._say("The conversation has changed meanwhile: look again.")
        return True

    def _change(self, key: str, index: int) -> PinChange:
        message_id, held = self._chat.session.messages[index - 1].id, self._chat.session.pins.scope
        if key == "p":
            return PinChange.UNPIN if message_id in held.pinned else PinChange.PIN
        return PinChange.INCLUDE if message_id in held.excluded else PinChange.EXCLUDE

    def _say(self, line: str) -> None:
        self.query_one("#price", Static).update(Text(one_line(line, 500)))

    def _follow(self) -> None:
        """Redraw after the request has changed, unless a price is shown."""
        if self._offered is None and self._newest() != self._report:
            self._redraw()

    def _redraw(self) -> None:
        more = -len(self._inspection.indexes)
        self._inspection, self._report = self._read(), self._newest()
        table = self.query(RowTable).last()
        row = table.cursor_row + max(0, more + len(self._inspection.indexes))
        self.show(self._inspection.lead, self._inspection.tables)
        table.move_cursor(row)
