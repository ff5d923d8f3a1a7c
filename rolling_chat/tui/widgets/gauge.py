"""The gauge: one bar of the window by category, the figures next to it, and its colors by level.

The width of the bar depends on the screen only, never on the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.text import Text
from textual.color import Color, ColorParseError
from textual.widget import Widget

from rolling_chat import figures
from rolling_chat.commands.context import band_of, left_out, sign_of, turns_left
from rolling_chat.messages import Usage

if TYPE_CHECKING:
    from rolling_chat.context.report import PromptReport

TICK = "│"
FREE = "·"

# Every category has a glyph of its own, so that the bar can be read without color.
GLYPHS: dict[str, str] = {
    "system": "█",
    "tools": "▓",
    "summary": "▒",
    "history": "▆",
    "current": "▄",
    "draft": "▂",
    "band": "▚",
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
    "band": "uncertain: the true count ends in it",
    "free": "free",
    "reserve": "reserve for the answer",
    "margin": "safety margin",
}

_MIN_BAR, _MIN_NARROW_BAR, _MAX_BAR = 10, 6, 60
_WIDE = 50  # columns; a narrower screen has no room for a useful bar
_ROOM_FOR_WORDS = 60  # columns; of every five beyond these, the bar gets two
_NEAR, _FULL = 0.8, 0.95  # shares of the room for the prompt


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the bar."""

    category: str
    glyph: str


def sizes(report: PromptReport) -> dict[str, int]:
    """Return the tokens of each category in the bar's order, with free space before the reserve."""
    used = {
        "system": report.system,
        "tools": report.tools,
        "summary": report.summary,
        "history": report.history,
        "current": report.current,
        "draft": report.draft,
    }
    free = report.room - sum(used.values())
    return {**used, "free": max(0, free), "reserve": report.reserve, "margin": report.margin}


def bar(report: PromptReport, width: int) -> list[Cell]:
    """Return the cells of a bar `width` cells wide for the window, or for the usage if that is larger.

    A nonempty category gets at least one cell while there is room; rounding errors go to the free space,
    then to the largest category.
    """
    parts = sizes(report)
    whole = sum(parts.values())
    if width <= 0 or whole <= 0:
        return [Cell("free", FREE)] * max(0, width)
    cells = {name: max(round(width * size / whole), 1 if size else 0) for name, size in parts.items()}
    _make_fit(cells, width)
    cells = _hatched(cells, round(width * report.below / whole), round(width * report.above / whole))
    drawn = [Cell(name, GLYPHS[name]) for name in GLYPHS for _ in range(cells[name])]
    if 0 < report.trim_at < whole:
        at = min(width - 1, round(width * report.trim_at / whole))
        if (
            report.trim_at <= whole - report.reserve - report.margin
        ):  # rounding must not move it past the room
            at = min(at, max(0, width - cells["reserve"] - cells["margin"] - 1))
        drawn[_tick_index(cells, drawn, at)] = Cell("tick", TICK)
    return drawn


def _hatched(cells: dict[str, int], below: int, above: int) -> dict[str, int]:
    """Return the cells with the band replacing `below` cells before and `above` cells after the end of usage.

    Every category keeps a cell, except free space.
    """
    hatched, band = dict(cells), 0
    used = [name for name in cells if name not in {"free", "reserve", "margin"}]
    for names, wanted in ((reversed(used), below), (("free", "reserve", "margin"), above)):
        for name in names:
            taken = min(wanted, hatched[name] if name == "free" else max(0, hatched[name] - 1))
            hatched[name] -= taken
            wanted, band = wanted - taken, band + taken  # noqa: PLW2901 - the rest
    return {**hatched, "band": band}


def _tick_index(cells: dict[str, int], drawn: list[Cell], at: int) -> int:
    """Return the index nearest to `at` where the tick does not hide a category's only cell."""
    places = [place for place, cell in enumerate(drawn) if cells[cell.category] > 1]
    return min(places, key=lambda place: abs(place - at), default=at)


def _make_fit(cells: dict[str, int], width: int) -> None:
    cells["free"] += max(0, width - sum(cells.values()))
    while (over := sum(cells.values()) - width) > 0:
        largest = "free" if cells["free"] else max(cells, key=lambda name: cells[name])
        cells[largest] -= min(over, max(1, cells[largest] - 1))


def _spent(usage: Usage) -> str:
    """Return the cost in US dollars and the share of the input that came from the provider's cache."""
    cached = 100 * usage.cached_read_tokens / usage.input_tokens if usage.input_tokens else 0.0
    return " · ".join(
        filter(None, (figures.cost(usage.cost), f"{figures.percent(cached)} cached" * bool(cached)))
    )


_ORDER = ("used", "turns", "rolling", "mode", "left_out", "cost", "cache")


@dataclass(frozen=True, slots=True)
class Figures:
    """The texts next to the bar; empty ones are not drawn."""

    used: str
    band: str
    window: str
    turns: str
    rolling: str
    left_out: str
    cost: str
    mode: str = ""
    cache: str = ""

    @classmethod
    def of(cls, report: PromptReport, usage: Usage, mode: str = "", cache: str = "") -> Figures:
        """Return the figures of a report, the session's usage, the permission mode and the cache."""
        share = f" / {figures.window(report.window)}  {figures.percent(report.percent)}"
        gone = left_out(report)
        return cls(
            f"{sign_of(report)}{figures.tokens(report.used)}",
            band_of(report),
            share if report.window else "",
            turns_left(report) if report.within_budget else "does not fit",
            f"rolling: {'on' if report.rolling else 'off'}",
            f"{gone:,} left out" if gone else "",
            _spent(usage),
            mode,
            cache,
        )

    def fit(self, width: int) -> list[str]:
        """Return the texts that fit next to the bar, whose width they do not change.

        The size comes first; its band is dropped if that makes room for the rolling state or the turns.
        """
        is_wide = width >= _WIDE
        room = width - bar_width(width)
        words = self._fitting(f"{self.used}{self.band}{self.window}", room, is_wide)
        if self.band and not {"rolling", "turns"} <= words.keys():
            without = self._fitting(f"{self.used}{self.window}", room, is_wide)
            words = without if {"rolling", "turns"} & without.keys() - words.keys() else words
        return [words[name] for name in _ORDER if name in words]

    def _fitting(self, used: str, room: int, is_wide: bool) -> dict[str, str]:
        """Return the texts that fit, chosen by importance; the turns may lose their last word."""
        turns = [("turns", self.turns), ("turns", self.turns.removesuffix(" left"))]
        first, second = (
            ([("rolling", self.rolling)], turns) if is_wide else (turns, [("rolling", self.rolling)])
        )
        wanted = [("used", used), ("mode", self.mode), *first, *second]
        dollars = self.cost.partition(" · ")[0]
        wanted += [("cost", self.cost), ("cost", dollars), ("cache", self.cache), ("left_out", self.left_out)]
        words: dict[str, str] = {}
        for name, word in wanted:
            if word and name not in words and len(word) + 2 <= room:
                words[name] = word
                room -= len(word) + 2
        return words


class Level(StrEnum):
    """How close the prompt is to the largest size that may be sent."""

    PLAIN = "foreground"
    NEAR = "warning"
    FULL = "error"


def level(report: PromptReport) -> Level:
    """Return how full the prompt is (plain, near, full), measured against the room for it, not the window."""
    room = report.room
    if not report.within_budget or (room > 0 and report.used >= _FULL * room):
        return Level.FULL
    return Level.NEAR if room > 0 and report.used >= _NEAR * room else Level.PLAIN


def bar_width(width: int) -> int:
    """Return the width of the bar on a screen `width` columns wide; the figures get the rest."""
    if width < _WIDE:
        return min(width, _MIN_NARROW_BAR)
    return min(_MAX_BAR, _MIN_BAR + max(0, width - _ROOM_FOR_WORDS) * 2 // 5)


class _Drawn(NamedTuple):
    """The visible part of a report: the bar's cells, the words next to it, and the first word's color."""

    bar: tuple[Cell, ...]
    words: tuple[str, ...]
    level: Level


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
        "band": "foreground",
        "free": "foreground",
        "reserve": "foreground",
        "margin": "foreground",
        "tick": "error",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._report: PromptReport | None = None
        self._usage = Usage()
        self._mode = self._cache = ""
        self._drawn: _Drawn | None = None

    def show(self, report: PromptReport | None, usage: Usage, mode: str = "", cache: str = "") -> None:
        """Draw `report`, the session's usage, and how long the provider's cache still lives.

        `mode` is the permission policy, empty for the default.
        """
        if (report, usage, mode, cache) == (self._report, self._usage, self._mode, self._cache):
            return
        self._report, self._usage, self._mode, self._cache = report, usage, mode, cache
        if self._drawing() != self._drawn:  # most tokens of a streaming answer change nothing visible
            self.refresh()

    def render(self) -> Text:
        """Draw the bar and its figures on one line."""
        drawn = self._drawn = self._drawing()
        if drawn is None:
            return Text("", no_wrap=True)
        line = Text(no_wrap=True, end="")
        for cell in drawn.bar:
            line.append(cell.glyph, self._color(cell.category))
        for at, word in enumerate(drawn.words):
            line.append("  ")
            line.append(word, f"bold {self._variable(drawn.level)}" if at == 0 else self._dim())
        return line

    def _drawing(self) -> _Drawn | None:
        report, width = self._report, self.size.width
        if report is None:
            return None
        words = Figures.of(report, self._usage, self._mode, self._cache).fit(width)
        return _Drawn(tuple(bar(report, bar_width(width))), tuple(words), level(report))

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
