"""The gauge as values: cells by category, the tick, the figures. No Textual here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolling_chat.commands import figures

if TYPE_CHECKING:
    from rolling_chat.context.report import PromptReport

TICK = "│"
FREE = "·"

# Every category has a glyph of its own, so that the bar can be read without colour.
GLYPHS: dict[str, str] = {
    "system": "█",
    "tools": "▓",
    "summary": "▒",
    "history": "▆",
    "current": "▄",
    "draft": "▂",
    "free": FREE,
    "reserve": "░",
    "margin": "╱",
}
LABELS: dict[str, str] = {
    "system": "system prompt",
    "tools": "tools",
    "summary": "summary",
    "history": "history",
    "current": "current turn",
    "draft": "draft",
    "free": "free",
    "reserve": "reserve for the answer",
    "margin": "safety margin",
}

_LEAST_BAR = 6
_MOST_BAR = 60
_LEAST_BAND = 0.005  # a narrower band rounds to nothing


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the bar."""

    category: str
    glyph: str


def sizes(report: PromptReport) -> dict[str, int]:
    """Tokens by category, in the order of the bar; what is free lies before the reserve."""
    used = {
        "system": report.system,
        "tools": report.tools,
        "summary": report.summary,
        "history": report.history,
        "current": report.current,
        "draft": report.draft,
    }
    free = report.window - sum(used.values()) - report.reserve - report.margin
    return {**used, "free": max(0, free), "reserve": report.reserve, "margin": report.margin}


def bar(report: PromptReport, width: int) -> list[Cell]:
    """The bar in `width` cells: the whole of it is the window, or what is used where that is more.

    A category that is there has at least one cell while there is room for it; rounding is taken
    from what is free, then from the largest.
    """
    parts = sizes(report)
    whole = sum(parts.values())
    if width <= 0 or whole <= 0:
        return [Cell("free", FREE)] * max(0, width)
    cells = {name: max(round(width * size / whole), 1 if size else 0) for name, size in parts.items()}
    _make_fit(cells, width)
    drawn = [Cell(name, GLYPHS[name]) for name, count in cells.items() for _ in range(count)]
    if 0 < report.trim_at < whole:
        at = min(width - 1, round(width * report.trim_at / whole))
        if report.trim_at <= whole - report.reserve - report.margin:  # rounding must not say otherwise
            at = min(at, max(0, width - cells["reserve"] - cells["margin"] - 1))
        drawn[_beside_the_single(cells, drawn, at)] = Cell("tick", TICK)
    return drawn


def _beside_the_single(cells: dict[str, int], drawn: list[Cell], at: int) -> int:
    """The place nearest to `at` where the tick does not hide the only cell of a category."""
    places = [place for place, cell in enumerate(drawn) if cells[cell.category] > 1]
    return min(places, key=lambda place: abs(place - at), default=at)


def _make_fit(cells: dict[str, int], width: int) -> None:
    cells["free"] += max(0, width - sum(cells.values()))
    while (over := sum(cells.values()) - width) > 0:
        largest = "free" if cells["free"] else max(cells, key=lambda name: cells[name])
        cells[largest] -= min(over, max(1, cells[largest] - 1))


@dataclass(frozen=True, slots=True)
class Figures:
    """The words beside the bar, most needed first."""

    used: str
    rolling: str
    left_out: str
    cost: str

    @classmethod
    def of(cls, report: PromptReport, cost: float | None) -> Figures:
        """The figures of a report and of what the session has cost in US dollars."""
        used = f"{_sign(report)}{figures.tokens(report.used)}{_band(report)}"
        if report.window:
            used += f" / {figures.window(report.window)}  {figures.percent(report.percent)}"
        gone = len(report.rows) and sum(
            row.tokens_after == 0 and row.tokens_before > 0 for row in report.rows
        )
        return cls(
            used,
            f"rolling: {'on' if report.rolling else 'off'}",
            f"{gone} left out" if gone else "",
            figures.cost(cost),
        )

    def fit(self, width: int) -> list[str]:
        """Those words for which there is room beside a bar of the least length."""
        words: list[str] = []
        room = width - _LEAST_BAR
        for word in (self.used, self.rolling, self.cost, self.left_out):
            if word and len(word) + 2 <= room:
                words.append(word)
                room -= len(word) + 2
        return words


def _sign(report: PromptReport) -> str:
    """An estimate says that it is one, until the model has counted the conversation."""
    return "" if report.exact and not report.draft else "~"


def _band(report: PromptReport) -> str:
    """How far the estimate of what is new may be off, where the model has confirmed the rest."""
    if not report.exact or report.band < _LEAST_BAND:
        return ""
    return f" ±{100 * report.band:.0f}%"


def bar_width(width: int, words: list[str]) -> int:
    """How many cells are left for the bar beside `words`."""
    return max(0, min(_MOST_BAR, width - sum(len(word) + 2 for word in words)))
