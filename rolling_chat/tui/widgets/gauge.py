"""The gauge: one bar of the window by category, and the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.color import Color, ColorParseError
from textual.widget import Widget

from rolling_chat.tui.widgets.gauge_bar import Figures, bar, bar_width, level

if TYPE_CHECKING:
    from rolling_chat.context.report import PromptReport


class Gauge(Widget):
    """A bar of the context window by category, with figures; empty until there is a prompt report."""

    DEFAULT_CSS = """
    Gauge { height: 1; padding: 0 1; background: $background; color: $foreground; }
    """
    _FALLBACK: ClassVar[dict[str, str]] = {
        "system": "primary",
        "tools": "secondary",
        "summary": "secondary",
        "history": "success",
        "current": "accent",
        "draft": "warning",
        "free": "foreground",
        "reserve": "foreground",
        "margin": "foreground",
        "tick": "error",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._report: PromptReport | None = None
        self._cost: float | None = None

    def show(self, report: PromptReport | None, cost: float | None) -> None:
        """Draw `report`; `cost` is in US dollars, None if the price is unknown."""
        if (report, cost) == (self._report, self._cost):
            return
        self._report, self._cost = report, cost
        self.refresh()

    def render(self) -> Text:
        """Draw the bar and its figures on one line."""
        report = self._report
        if report is None:
            return Text("", no_wrap=True)
        width = self.size.width
        words = Figures.of(report, self._cost).fit(width)
        line = Text(no_wrap=True, end="")
        for cell in bar(report, bar_width(width, words)):
            line.append(cell.glyph, self._color(cell.category))
        for at, word in enumerate(words):
            line.append("  ")
            line.append(word, f"bold {self._variable(level(report))}" if at == 0 else self._dim())
        return line

    def _dim(self) -> str:
        return self._variable("foreground")

    def _color(self, category: str) -> str:
        return self._variable(f"gauge-{category}", self._FALLBACK[category])

    def _variable(self, name: str, fallback: str = "foreground") -> str:
        variables = self.app.theme_variables
        try:
            return Color.parse(variables.get(name) or variables[fallback]).hex6
        except ColorParseError:
            return Color.parse(variables[fallback]).hex6
