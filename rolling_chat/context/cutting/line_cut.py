"""A text that can be cut to any size; its kind is detected and its lines are compared only once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.context.cutting.kinds import detect_kind
from rolling_chat.context.cutting.lines import Lines, TextKind
from rolling_chat.context.cutting.notices import Describe, Gap
from rolling_chat.context.cutting.pieces import Layer, choose, split

_MIN_LINE = 2  # the fewest characters of a piece: no layer is asked for more pieces than could fit


@dataclass(frozen=True, slots=True)
class LineCut:
    """A text as lines, with the order in which to keep them."""

    lines: Lines
    kind: TextKind
    layers: Sequence[Layer]
    sizes: Sequence[int]
    offsets: Sequence[int]

    @classmethod
    def of(cls, text: str, chars: int) -> LineCut:
        """Analyze a text that will be cut to about `chars` characters."""
        pieces = split(text)
        kind = detect_kind(pieces)
        lines = Lines(pieces, kind.are_paths)
        max_pieces = 100 + chars // _MIN_LINE
        layers = [
            Layer(list(itertools.islice(layer.order, max_pieces)), layer.share)
            for layer in kind.layers(lines)
        ]
        sizes = list(map(len, pieces.texts))
        return cls(lines, kind, layers, sizes, [0, *itertools.accumulate(sizes)])

    def render(self, chars: int, describe: Describe) -> str:
        """Return about `chars` characters of the text, with marks for the gaps and a notice."""
        chosen, body, gaps = self.keep(chars)
        notice = describe(self.kind.name, self.kind.note(self.lines, chosen), gaps)
        return "\n".join([body, *notice])

    def keep(self, chars: int) -> tuple[list[int], str, list[Gap]]:
        """Return the indexes of the pieces that fit in about `chars` characters, their text, and the gaps."""
        chosen = choose(self.sizes, self.layers, chars)
        kept: list[int] = []
        parts: list[str] = []
        gaps: list[Gap] = []
        for index in [*chosen, self.lines.count]:
            start = kept[-1] + 1 if kept else 0
            if start < index:
                gap = self._gap(start, index)
                if gap.chars <= len(gap.mark):
                    self._keep(range(start, index), kept, parts)
                else:
                    gaps.append(gap)
                    parts.append(gap.mark if not parts else "\n" + gap.mark)
            if index < self.lines.count:
                self._keep((index,), kept, parts)
        return kept, "".join(parts), gaps

    def _keep(self, indexes: Sequence[int], kept: list[int], parts: list[str]) -> None:
        pieces = self.lines.pieces
        for index in indexes:
            is_continued = index in pieces.inner and bool(kept) and kept[-1] == index - 1
            parts.append(pieces.texts[index] if is_continued or not parts else "\n" + pieces.texts[index])
            kept.append(index)

    def _gap(self, start: int, end: int) -> Gap:
        pieces = self.lines.pieces
        first, last = pieces.numbers[start], pieces.numbers[end - 1]
        chars = self.offsets[end] - self.offsets[start] + last - first
        is_part = first == last and (start in pieces.inner or end in pieces.inner)
        return Gap(first, last, chars, f"{chars:,} characters of line {first}" if is_part else "")
