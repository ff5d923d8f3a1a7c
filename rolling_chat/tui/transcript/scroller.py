"""A scrolled widget whose place is kept elsewhere: the scroll bar is told of it, and asked when dragged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events
    from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp

_WHEEL_LINES = 3


class RowScroller(ScrollView):
    """Turns the wheel, the scroll bar and Textual's own scrolling into moves by lines and to rows."""

    _is_settling = False
    _thumb: tuple[object, ...] = ()

    def move_lines(self, lines: int) -> None:
        """Scroll by lines."""
        raise NotImplementedError

    def move_to_row(self, row: int) -> None:
        """Scroll to a row, as the scroll bar has it."""
        raise NotImplementedError

    def scroll_pages(self, pages: int) -> None:
        """Scroll by pages."""
        raise NotImplementedError

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Who scrolls by other means than ours (a selection that is drawn over the edge) moves by lines."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        is_cut = old_value > new_value >= self.max_scroll_y  # by another size, and not by a person
        if not self._is_settling and not is_cut and round(old_value) != round(new_value):
            self.move_lines(round(new_value) - round(old_value))

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -_WHEEL_LINES)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, _WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.move_lines(lines)

    def _on_scroll_to(self, message: ScrollTo) -> None:
        message.stop()
        message.prevent_default()
        if message.y is not None:
            self.move_to_row(round(message.y))

    def _on_scroll_up(self, message: ScrollUp) -> None:
        message.stop()
        message.prevent_default()
        self.scroll_pages(-1)

    def _on_scroll_down(self, message: ScrollDown) -> None:
        message.stop()
        message.prevent_default()
        self.scroll_pages(1)

    def tell_scroll_bar(self, width: int, height: int, top: int, total: int) -> None:
        """`height` rows of `total` are looked at, from `top` on."""
        self._is_settling = True
        try:
            # no layout hangs on how much there is to scroll
            self.set_reactive(Widget.virtual_size, Size(width, max(total, height)))
            self.set_reactive(Widget.scroll_y, float(top))
            self.set_reactive(Widget.scroll_target_y, float(top))
            if self.show_vertical_scrollbar:
                self._move_thumb(height, top, total)
        finally:
            self._is_settling = False

    def _move_thumb(self, height: int, top: int, total: int) -> None:
        """The bar is drawn anew only where its thumb would not be the same: it has eighths of a row."""
        bar, scale = self.vertical_scrollbar, 8 * height / max(1, total)
        thumb = (height, total > height, round(top * scale), round((top + height) * scale))
        if thumb != self._thumb:
            self._thumb = thumb
            bar.window_virtual_size, bar.window_size, bar.position = total, height, top
            return
        for name, value in (("window_virtual_size", total), ("window_size", height), ("position", top)):
            bar.set_reactive(getattr(ScrollBar, name), value)
