"""The list of slash commands that grows under one's fingers, above the prompt box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.color import Color
from textual.widget import Widget

from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from rolling_chat.commands import Command

_ROWS = 12
_LEAST_SIGNATURE = 20  # cells; a longer one among several gives way to what they do


class Completion(Widget):
    """Shows the commands that the draft may become, one of them chosen."""

    DEFAULT_CSS = """
    Completion {
        height: 1; max-height: 50vh; padding: 0 1; display: none;
        background: $panel; color: $foreground;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._commands: tuple[Command, ...] = ()
        self._at = 0

    @property
    def shown(self) -> bool:
        """Is there anything to choose from?"""
        return bool(self._commands)

    @property
    def chosen(self) -> Command | None:
        """The command under the cursor."""
        return self._commands[self._at] if self._commands else None

    def show(self, commands: tuple[Command, ...]) -> None:
        """Offer these commands; none hides the list."""
        if commands != self._commands:
            self._commands, self._at = commands, 0
            self.display = bool(commands)
            self.styles.height = min(_ROWS, len(commands))
            self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Choose another one, round and round."""
        if self._commands:
            self._at = (self._at + step) % len(self._commands)
            self.refresh()

    def render(self) -> Text:
        """The rows around the chosen one."""
        rows = self.size.height or _ROWS
        first = max(0, min(self._at - rows + 1, len(self._commands) - rows))
        shown = self._commands[first : first + rows]
        wide = max((len(command.signature) for command in self._commands), default=0)
        if len(self._commands) > 1:
            wide = min(wide, max(_LEAST_SIGNATURE, self.size.width // 3))
        accent = Color.parse(self.app.theme_variables["primary"]).hex6
        lines: list[Text] = []
        for at, command in enumerate(shown, first):
            mark = "❯ " if at == self._at else "  "
            line = Text(mark, no_wrap=True)
            line.append(
                cut(command.signature, wide).ljust(wide), f"bold {accent}" if at == self._at else accent
            )
            room = self.size.width - len(line.plain) - 2
            line.append("  " + cut(command.summary, room))
            lines.append(line)
        return Text("\n").join(lines)
