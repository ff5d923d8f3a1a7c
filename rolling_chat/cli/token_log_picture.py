"""Draw the token log as SVG: the error of each estimate over the size of its prompt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolling_chat.agent.token_log import Accuracy, Counted, Phase, TokenLog, by_content, by_model
from rolling_chat.figures import plural, tokens
from rolling_chat.replay.picture import PAPER_STYLE, label, svg_text

_WIDTH, _HEIGHT = 1200, 640
_LEFT, _TOP, _RIGHT, _BOTTOM = 92, 84, 760, 570  # the plot's edges
_LEGEND = 790
_LINE = 22
_MAX_MODELS, _MAX_CONTENTS = 8, 8
_MAX_POINTS = 4_000  # more would only make the file larger
_MIN_SCALE = 0.05  # the smallest vertical scale, so that small errors look small
_CUT = 1.0  # errors beyond 100 % are drawn at the edge

# Colors that can be distinguished without color vision.
_STYLE = """
  .m0 { fill: #0072b2; stroke: #0072b2; } .m1 { fill: #d55e00; stroke: #d55e00; }
  .m2 { fill: #009e73; stroke: #009e73; } .m3 { fill: #cc79a7; stroke: #cc79a7; }
  .m4 { fill: #8c6d00; stroke: #8c6d00; } .m5 { fill: #56b4e9; stroke: #56b4e9; }
  .m6 { fill: #7b5ea7; stroke: #7b5ea7; } .m7 { fill: #7b8794; stroke: #7b8794; }
  .first { fill-opacity: 0; stroke-width: 1.6; } .growing, .summary { fill-opacity: 0.55; stroke-width: 0; }
  .beyond { fill: #c0262d; stroke: #c0262d; }
"""


@dataclass(frozen=True, slots=True)
class _Plot:
    """The scales of the plot: counts to logarithmic x positions, errors to y positions."""

    least: float
    most: float
    scale: float

    @classmethod
    def of(cls, requests: Sequence[Counted]) -> _Plot:
        sizes = [request.reported for request in requests]
        worst = max(abs(request.error) for request in requests)
        return cls(
            math.floor(math.log10(min(sizes))),
            math.ceil(math.log10(max(sizes) + 1)),
            max(_MIN_SCALE, min(worst, _CUT) * 1.1),
        )

    def x(self, size: float) -> float:
        return _LEFT + (math.log10(size) - self.least) / (self.most - self.least) * (_RIGHT - _LEFT)

    def y(self, error: float) -> float:
        middle = (_TOP + _BOTTOM) / 2
        return middle - max(-1.0, min(error / self.scale, 1.0)) * (_BOTTOM - _TOP) / 2


def draw_token_log(log: TokenLog) -> str:
    """Draw a log with at least one request as a whole SVG file.

    A ring is a first request, a dot a later one; red ones exceeded our upper bound.
    """
    plot = _Plot.of(log.requests)
    models = {model: index for index, model in enumerate(dict.fromkeys(model for model, _ in by_model(log)))}
    title = f"Estimated and reported tokens of {plural(len(log.requests), 'request')}"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title">'
    )
    return "\n".join(
        [
            opening,
            f'<title id="title">{svg_text(title)}</title>',
            f"<style>{PAPER_STYLE}{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
            f'<text class="ink title" x="{_LEFT}" y="36">{svg_text(title)}</text>',
            label(
                _LEFT,
                58,
                "above 0: the estimate was too high; ring: a first request; red: more than our upper bound",
                "soft",
            ),
            *_grid(plot),
            *_points(log.requests, plot, models),
            *_legend(log, models),
            "</svg>\n",
        ]
    )


def _grid(plot: _Plot) -> Iterator[str]:
    for power in range(int(plot.least), int(plot.most) + 1):
        x = plot.x(10**power)
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}"/>'
        yield label(x, _BOTTOM + 20, tokens(10**power), "soft", "middle")
    yield label((_LEFT + _RIGHT) / 2, _BOTTOM + 44, "reported tokens of the prompt", "soft", "middle")
    for part in (-1, -0.5, 0, 0.5, 1):
        y = plot.y(part * plot.scale)
        style = "axis" if part == 0 else "grid"
        yield f'<line class="{style}" x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}"/>'
        yield label(_LEFT - 8, y + 4.5, share(part * plot.scale), "soft", "end")


def _points(requests: Sequence[Counted], plot: _Plot, models: dict[str, int]) -> Iterator[str]:
    step = math.ceil(len(requests) / _MAX_POINTS)
    drawn = [request for at, request in enumerate(requests) if request.is_beyond or at % step == 0]
    for request in drawn:
        color = "beyond" if request.is_beyond else _color(models[request.model])
        yield (
            f'<circle class="{color} {request.phase.value}" cx="{plot.x(request.reported):.1f}" '
            f'cy="{plot.y(request.error):.1f}" r="4"/>'
        )


def _legend(log: TokenLog, models: dict[str, int]) -> Iterator[str]:
    y = float(_TOP)
    yield label(_LEGEND, y, "median error, 95 %, beyond the bound", "soft")
    rows = list(by_model(log).items())
    for (model, phase), requests in rows[: 2 * _MAX_MODELS]:
        y += _LINE
        accuracy, beyond = Accuracy.of(requests), sum(request.is_beyond for request in requests)
        ring = Phase.FIRST.value if phase is Phase.FIRST else Phase.GROWING.value
        yield f'<circle class="{_color(models[model])} {ring}" cx="{_LEGEND + 6}" cy="{y - 4.5:.1f}" r="5"/>'
        figures = f"{share(accuracy.median)}, {share(accuracy.p95)}, {beyond:,} of {len(requests):,}"
        yield label(_LEGEND + 18, y, f"{_short(model)} {phase.value}: {figures}", "ink")
    if len(rows) > 2 * _MAX_MODELS:
        y += _LINE
        yield label(_LEGEND + 18, y, f"and {len(rows) - 2 * _MAX_MODELS} more", "soft")
    contents = list(by_content(log).items())[:_MAX_CONTENTS]
    if not contents:
        return
    y += 1.5 * _LINE
    yield label(_LEGEND, y, "by what was added: median error, 95 %", "soft")
    for content, added in contents:
        y += _LINE
        accuracy = Accuracy.of(added)
        text = f"{content}: {share(accuracy.median)}, {share(accuracy.p95)} ({plural(len(added), 'time')})"
        yield label(_LEGEND + 18, y, text, "ink")


def share(part: float) -> str:
    """Format a share of one as a percentage: `4.3 %`."""
    return f"{100 * part:.1f} %"


def _short(model: str) -> str:
    name = model.rpartition("/")[2]
    return name if len(name) <= 30 else f"{name[:29]}…"


def _color(index: int) -> str:
    return f"m{min(index, _MAX_MODELS - 1)}"
