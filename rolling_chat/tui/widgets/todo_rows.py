"""The model's to-do list above the prompt box."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.widget import Widget

from rolling_chat.todo_list import TodoItem, TodoList, TodoState
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual.app import RenderResult

_MAX_ROWS = 5
_TALL = 28  # a terminal with at least so many rows shows more than one
_SIGNS = {TodoState.DONE: "✓", TodoState.DOING: "▸", TodoState.PENDING: "○"}


class TodoRows(Widget):
    """A few rows of the list around the current item; only one row on a small terminal."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"todo-rows--doing"}
    DEFAULT_CSS = """
    TodoRows { display: none; height: auto; padding: 0 1; background: $background; color: $text-muted; }
    TodoRows.-shown { display: block; }
    TodoRows > .todo-rows--doing { color: $text; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._todo: TodoList | None = None
        self._is_tall = False

    def show(self, todo: TodoList | None, height: int) -> None:
        """Show a list, or nothing, on a terminal of `height` rows."""
        if (todo, height >= _TALL) == (self._todo, self._is_tall):
            return
        self._todo, self._is_tall = todo, height >= _TALL
        self.set_class(todo is not None, "-shown")
        self.refresh(layout=True)

    def render(self) -> RenderResult:
        """Draw the rows."""
        if self._todo is None:
            return ""
        return Text("\n", no_wrap=True, end="").join(self._rows(self._todo))

    def _rows(self, todo: TodoList) -> list[Text]:
        count = f"{todo.done}/{len(todo.items)} done"
        at = todo.next_index
        if at < 0:
            return [self._row(f"✓ {count}")]
        if not self._is_tall:
            return [self._item(todo.items[at], count)]
        first = max(0, min(at - 1, len(todo.items) - _MAX_ROWS))
        shown = todo.items[first : first + _MAX_ROWS]
        is_part = len(shown) < len(todo.items)
        return [self._item(item, count if is_part and index == 0 else "") for index, item in enumerate(shown)]

    def _item(self, item: TodoItem, count: str) -> Text:
        style = "todo-rows--doing" if item.state is TodoState.DOING else ""
        return self._row(f"{_SIGNS[item.state]} {item.text}", f"  {count}" if count else "", style)

    def _row(self, text: str, count: str = "", style: str = "") -> Text:
        width = self.content_size.width
        line = Text(cut(text, max(1, width - len(count))), no_wrap=True, end="")
        if style:
            line.stylize(self.get_component_rich_style(style, partial=True))
        return line.append(count)
