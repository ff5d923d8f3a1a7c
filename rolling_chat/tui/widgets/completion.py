"""The list of completions above the prompt box, updated as the user types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.color import Color
from textual.message import Message
from textual.widget import Widget

from rolling_chat.text import one_line
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from rolling_chat.commands import Choice

_ROWS = 12
_MIN_LABEL = 20  # cells; longer labels may be cut to make room for the notes


class Completion(Widget):
    """A list of choices with one of them highlighted; posts `Toggled` when it opens or closes."""

    DEFAULT_CSS = """
    Completion {
        height: 1; max-height: 50vh; padding: 0 1; display: none;
        background: $panel; color: $foreground;
    }
    Completion.-open { display: block; }
    """

    class Toggled(Message):
        """Posted when the list opens or closes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices: tuple[Choice, ...] = ()
        self._at: int | None = None

    @property
    def shown(self) -> bool:
        """Whether there are choices to show."""
        return bool(self._choices)

    @property
    def taken(self) -> Choice | None:
        """The highlighted choice, which Enter accepts; None if none is highlighted."""
        return None if self._at is None else self._choices[self._at]

    @property
    def first(self) -> Choice | None:
        """The choice that Tab completes: the highlighted one, or the first; None without choices."""
        return self._choices[self._at or 0] if self._choices else None

    def show(self, choices: tuple[Choice, ...], *, marks_first: bool) -> None:
        """Show `choices`, the first highlighted if `marks_first`; without choices, hide the list."""
        if choices != self._choices:
            if bool(choices) != self.shown:
                self.post_message(self.Toggled())
            self._choices, self._at = choices, 0 if choices and marks_first else None
            self.set_class(bool(choices), "-open")
            self.screen.set_class(bool(choices), "-completing")
            self.styles.height = min(_ROWS, len(choices))
            self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Move the highlight by `step` choices, wrapping around at both ends."""
        if self._choices:
            before = self._at if self._at is not None else (-1 if step > 0 else 0)
            self._at = (before + step) % len(self._choices)
            self.refresh()

    def render(self) -> Text:
        """Draw the choices around the highlighted one."""
        rows = self.size.height or _ROWS
        first = max(0, min((self._at or 0) - rows + 1, len(self._choices) - rows))
        shown = self._choices[first : first + rows]
        wide = self._label_width()
        accent = Color.parse(self.app.theme_variables["primary"]).hex6
        lines: list[Text] = []
        for at, choice in enumerate(shown, first):
            mark = "❯ " if at == self._at else "  "
            line = Text(mark, no_wrap=True)
            line.append(padded(choice.label, wide), f"bold {accent}" if at == self._at else accent)
            room = self.size.width - line.cell_len - 2
            line.append("  " + cut(one_line(choice.note), room))
            lines.append(line)
        return Text("\n").join(lines)

    def _label_width(self) -> int:
        wide = max((Text(choice.label).cell_len for choice in self._choices), default=0)
        if len(self._choices) > 1 and any(choice.note for choice in self._choices):
            return min(wide, max(_MIN_LABEL, self.size.width // 3))
        return min(wide, max(0, self.size.width - 2))


def padded(label: str, width: int) -> str:
    """Return a label on one line, cut or filled to `width` cells."""
    text = cut(one_line(label), width)
    return text + " " * (width - Text(text).cell_len)
