"""Draw a replay as an SVG picture: the prompt's tokens by category, over the requests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby

from rolling_chat.replay.run import Replayed
from rolling_chat.text import one_line

CATEGORIES = ("system", "tools", "summary", "history", "current")
"""The parts of a prompt from the bottom of the picture up; each is a field of the report."""

_WIDTH, _HEIGHT = 1200, 600
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 28, 128, 64
_PLOT_WIDTH = _WIDTH - _LEFT - _RIGHT
_PLOT_HEIGHT = _HEIGHT - _TOP - _BOTTOM
_FLOOR = _TOP + _PLOT_HEIGHT
_OPENING = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
    f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title desc">'
)
# Trims are drawn in a strip above the plot, so that they never hide a column.
_STRIP = 14
# More columns than a screen can show would only make the file larger.
_MAX_COLUMNS = 1000
_MAX_BOUNDARIES = 120
_MAX_TRIANGLES = 80
# If prompts stay below this share of the window, the scale follows the prompts, or they would be a thin line.
_MIN_SHARE = 0.3

_REFUSED_OPACITY = 0.4
_NAMES = {"current": "current turn"}

PAPER_STYLE = """
  svg { color-scheme: light dark; }
  .paper { fill: #ffffff; } .ink { fill: #1f2933; } .soft { fill: #52606d; }
  .grid { stroke: #d9e0e7; } .axis { stroke: #7b8794; }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
  .title { font-size: 19px; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #12171d; } .ink { fill: #e4e9ee; } .soft { fill: #a3b0bd; }
    .grid { stroke: #2a333d; } .axis { stroke: #7b8794; }
  }
"""
"""The style of paper, text and grid in all pictures, for the reader's light or dark scheme."""

# The colors also differ in lightness between neighbors, for readers without color vision.
_STYLE = (
    PAPER_STYLE
    + """
  .between { stroke: #9aa5b1; }
  .system { fill: #475569; } .tools { fill: #a78bca; } .summary { fill: #2a9d8f; }
  .history { fill: #7fb2e5; } .current { fill: #f0a830; }
  .window { stroke: #c0262d; } .window-ink { fill: #c0262d; }
  .room { stroke: #52606d; } .trim { fill: #1f2933; stroke: #1f2933; } .refused { fill: #c0262d; }
  .over { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
  @media (prefers-color-scheme: dark) {
    .over { stroke: #12171d; } .between { stroke: #5b6773; }
    .system { fill: #8593a5; } .tools { fill: #6d4fa0; } .summary { fill: #3fbfae; }
    .history { fill: #3f76b5; } .current { fill: #f2b84b; }
    .window { stroke: #ff6b6b; } .window-ink { fill: #ff6b6b; }
    .room { stroke: #a3b0bd; } .trim { fill: #e4e9ee; stroke: #e4e9ee; } .refused { fill: #ff6b6b; }
  }
"""
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One request's tokens by category, in the order of CATEGORIES.

    It contains only what the picture needs, because a file may have a hundred thousand requests.
    """

    conversation: str
    tokens: tuple[int, ...]
    trimmed: bool
    refused: bool
    window: int
    room: int

    @classmethod
    def of(cls, replayed: Replayed) -> Sample:
        """Build a sample from one request's report."""
        report = replayed.report
        return cls(
            conversation=replayed.conversation,
            tokens=tuple(getattr(report, category) for category in CATEGORIES),
            trimmed=report.trimmed and not replayed.overflow,
            refused=bool(replayed.overflow),
            window=report.window,
            room=max(0, report.room),
        )

    @property
    def total(self) -> int:
        """The prompt's tokens."""
        return sum(self.tokens)


def draw_picture(samples: Sequence[Sample], *, title: str, subtitle: str) -> str:
    """Draw `samples` as a complete SVG file, one column per request, in the order given.

    Conversations follow each other, separated by a line. A refused request is a red column of full height.
    With more than a thousand requests, a column represents several and shows the largest. The picture follows
    the reader's light or dark scheme.
    """
    columns = _columns(samples)
    scale = _Scale.of(samples)
    name, under = svg_text(title), svg_text(subtitle)
    lines = [
        _OPENING,
        f'<title id="title">{name}</title>',
        f'<desc id="desc">{under}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text class="ink title" x="{_LEFT}" y="36">{name}</text>',
        f'<text class="soft" x="{_LEFT}" y="58">{under}</text>',
        *_legend(samples, scale),
        *_grid(scale),
        *_stack(columns, scale),
        *_refusals(columns),
        *_boundaries(columns),
        *_limits(scale),
        *_trims(columns),
        *_request_axis(len(samples)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Scale:
    """The mapping of tokens to heights; `window` is W, `room` is the part of it for the prompt."""

    top: int
    window: int
    room: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _Scale:
        window = max((sample.window for sample in samples), default=0)
        room = max((sample.room for sample in samples), default=0)
        peak = max((sample.total for sample in samples if not sample.refused), default=0)
        is_small = 0 < peak < window * _MIN_SHARE
        return cls(max(1, round((peak if is_small else max(peak, window)) * 1.06)), window, room)

    def y(self, tokens: int) -> float:
        return round(_FLOOR - min(tokens / self.top, 1.0) * _PLOT_HEIGHT, 1)

    def marks(self) -> Iterator[int]:
        """Yield four to eight round numbers of tokens."""
        rough = self.top / 6
        power = 10 ** math.floor(math.log10(max(rough, 1)))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        yield from range(0, self.top + 1, max(1, int(step)))


def _columns(samples: Sequence[Sample]) -> list[Sample]:
    """Return at most _MAX_COLUMNS samples; the largest sent request represents those that share a column."""
    width = math.ceil(len(samples) / _MAX_COLUMNS) or 1
    if width == 1:
        return list(samples)
    columns: list[Sample] = []
    for start in range(0, len(samples), width):
        group = samples[start : start + width]
        largest = max(group, key=lambda sample: (not sample.refused, sample.total))
        columns.append(
            replace(
                largest,
                conversation=group[0].conversation,
                trimmed=any(sample.trimmed for sample in group),
                refused=any(sample.refused for sample in group),
            )
        )
    return columns


def _x(index: int, columns: int) -> float:
    return round(_LEFT + index * _PLOT_WIDTH / max(columns, 1), 2)


def _stack(columns: Sequence[Sample], scale: _Scale) -> Iterator[str]:
    """Yield one filled outline per category: along its upper edge, and back along its lower edge."""
    below = [0] * len(columns)
    for index, category in enumerate(CATEGORIES):
        above = [
            low if column.refused else low + column.tokens[index]
            for low, column in zip(below, columns, strict=True)
        ]
        if above != below:
            points = [*_edge(above, scale), *reversed(list(_edge(below, scale)))]
            path = "L".join(f"{x:g},{y:g}" for x, y in points)
            name = _NAMES.get(category, category)
            yield f'<path class="{category}" d="M{path}Z"><title>{name}</title></path>'
        below = above


def _edge(heights: Sequence[int], scale: _Scale) -> Iterator[tuple[float, float]]:
    """Yield the corners of a step line; equal neighbors have no corner between them."""
    last = len(heights) - 1
    for index, tokens in enumerate(heights):
        y = scale.y(tokens)
        if index == 0 or heights[index - 1] != tokens:
            yield _x(index, len(heights)), y
        if index == last or heights[index + 1] != tokens:
            yield _x(index + 1, len(heights)), y


def _refusals(columns: Sequence[Sample]) -> Iterator[str]:
    """Yield a rectangle for each run of refused requests, wide enough to be visible."""
    index = 0
    for refused, group in groupby(columns, key=lambda column: column.refused):
        end = index + sum(1 for _ in group)
        if refused:
            x = _x(index, len(columns))
            width = max(_x(end, len(columns)) - x, 1.5)
            yield (
                f'<rect class="refused" x="{x:g}" y="{_TOP}" width="{width:.2f}" '
                f'height="{_PLOT_HEIGHT}" opacity="{_REFUSED_OPACITY}"/>'
            )
        index = end


def _boundaries(columns: Sequence[Sample]) -> Iterator[str]:
    indexes = [
        index
        for index in range(1, len(columns))
        if columns[index].conversation != columns[index - 1].conversation
    ]
    if len(indexes) > _MAX_BOUNDARIES:
        return
    for index in indexes:
        x = _x(index, len(columns))
        yield (
            f'<line class="between" x1="{x:g}" y1="{_TOP}" x2="{x:g}" y2="{_FLOOR}" '
            'stroke-width="0.8" stroke-dasharray="1 3"/>'
        )


def _trims(columns: Sequence[Sample]) -> Iterator[str]:
    indexes = [index for index, column in enumerate(columns) if column.trimmed]
    bottom = _TOP - 3
    for index in indexes:
        x = _x(index, len(columns)) + _PLOT_WIDTH / len(columns) / 2
        if len(indexes) <= _MAX_TRIANGLES:
            yield f'<path class="trim" d="M{x - 4:.1f},{bottom - 8}h8l-4,7z" stroke="none"/>'
        else:
            yield (
                f'<line class="trim" x1="{x:.1f}" y1="{bottom - 9}" x2="{x:.1f}" y2="{bottom}" '
                'stroke-width="1"/>'
            )


def _limits(scale: _Scale) -> Iterator[str]:
    right = _LEFT + _PLOT_WIDTH
    if not scale.window:
        return
    if scale.window > scale.top:
        yield label(right, _TOP + 14, f"window {scale.window:,}: far above ↑", "window-ink over", "end")
        return
    y = scale.y(scale.window)
    yield f'<line class="window" x1="{_LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}" stroke-width="1.8"/>'
    yield label(right - 4, y - 5, f"window {scale.window:,}", "window-ink over", "end")
    y = scale.y(scale.room)
    yield (
        f'<line class="room" x1="{_LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}" '
        'stroke-width="1" stroke-dasharray="6 4"/>'
    )
    yield label(right - 4, y - 5, f"room for the prompt {scale.room:,}", "soft over", "end")


def _grid(scale: _Scale) -> Iterator[str]:
    right = _LEFT + _PLOT_WIDTH
    for tokens in scale.marks():
        y = scale.y(tokens)
        style = "axis" if tokens == 0 else "grid"
        yield f'<line class="{style}" x1="{_LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}"/>'
        yield label(_LEFT - 8, y + 4.5, f"{tokens:,}", "soft", "end")
    middle = _TOP + _PLOT_HEIGHT / 2
    yield (
        f'<text class="soft" x="22" y="{middle:g}" text-anchor="middle" '
        f'transform="rotate(-90 22 {middle:g})">tokens of the prompt</text>'
    )


def _request_axis(requests: int) -> Iterator[str]:
    step = _round_step(requests / 10)
    for number in dict.fromkeys([1, *range(step, requests + 1, step)]):
        if number > requests:
            continue
        x = _LEFT + (number - 0.5) * _PLOT_WIDTH / requests
        yield f'<line class="axis" x1="{x:.1f}" y1="{_FLOOR}" x2="{x:.1f}" y2="{_FLOOR + 5}"/>'
        yield label(x, _FLOOR + 20, f"{number:,}", "soft", "middle")
    text = "request" if requests else "no requests: the transcript contains no model call"
    yield label(_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 18, text, "soft", "middle")


def _round_step(rough: float) -> int:
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    return int(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough))


def _legend(samples: Sequence[Sample], scale: _Scale) -> Iterator[str]:
    """Yield the legend: visible categories, in the order of the stack from the top down, then the marks."""
    x, y = float(_LEFT), 86.0
    for index, category in reversed(list(enumerate(CATEGORIES))):
        most = max((sample.tokens[index] for sample in samples), default=0)
        if scale.y(most) < _FLOOR - 0.5:
            name = _NAMES.get(category, category)
            yield f'<rect class="{category}" x="{x:g}" y="{y - 10:g}" width="12" height="12" rx="2"/>'
            yield label(x + 18, y, name, "ink")
            x += 42 + 7.2 * len(name)
    trims = sum(sample.trimmed for sample in samples)
    text = f"trim: messages were omitted or shortened ({trims:,})"
    yield f'<path class="trim" d="M{x + 2:g},{y - 8:g}h8l-4,7z" stroke="none"/>'
    yield label(x + 18, y, text, "ink")
    x += 42 + 6.6 * len(text)
    if refused := sum(sample.refused for sample in samples):
        yield (
            f'<rect class="refused" x="{x:g}" y="{y - 10:g}" width="12" height="12" rx="2" '
            f'opacity="{_REFUSED_OPACITY}"/>'
        )
        yield label(x + 18, y, f"refused, does not fit ({refused:,})", "ink")


def label(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    """Return a text element anchored at its left end, middle or right end at `x`."""
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{svg_text(text)}</text>'


def svg_text(text: str) -> str:
    """Escape untrusted text for XML, without characters that XML does not allow."""
    return escape("".join(c for c in one_line(text, 160) if ord(c) & 0xFFFE != 0xFFFE))
