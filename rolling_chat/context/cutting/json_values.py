"""Cut JSON and JSON Lines so that they stay valid: keys and rows are copied verbatim from the text."""

from __future__ import annotations

import bisect
import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rolling_chat.context.cutting.line_cut import LineCut
from rolling_chat.context.cutting.lines import Lines
from rolling_chat.context.cutting.notices import Describe, Gap
from rolling_chat.context.cutting.pieces import Layer, Pieces, choose, edges
from rolling_chat.context.leveling import level

_Span: TypeAlias = tuple[int, int]

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_scan: Callable[[str, int], tuple[object, int]] = json.JSONDecoder().raw_decode

_MAX_FRAME = 2_000  # characters before and after the JSON, such as a line with an exit code
_MAX_FRAME_LINES = 4
_MAX_DEPTH = 8
_MAX_LEVELED = 40  # members that share the room; with more, they are rows, of which only some are kept
_MIN_SHARE = 30  # characters; if members would get less, they are rows
_ROW_SHARE = 6  # a row takes at most this fraction of the room
_MIN_ROW = 160  # characters
_MAX_COMPARED = 4_000  # characters of a row
_MIN_TEXT = 400  # characters from which a text inside JSON is cut by its own kind


@dataclass(frozen=True, slots=True)
class _Rows:
    """The members of a container, each with its key, and the order in which to keep them."""

    spans: Sequence[_Span]
    values: Sequence[_Span]
    layers: Sequence[Layer] = ()


@dataclass
class JsonBody:
    """The JSON in `text` from `start` to `end`; with `are_lines`, each line is a value of its own."""

    text: str
    start: int
    end: int
    are_lines: bool = False
    _known: dict[int, _Rows] = field(default_factory=dict)
    _texts: dict[int, LineCut] = field(default_factory=dict)
    _line_ends: list[int] = field(default_factory=list)
    _gaps: list[Gap] = field(default_factory=list)

    def render(self, chars: int, describe: Describe) -> str:
        """Return the JSON in about `chars` characters, with a notice as its last value."""
        self._gaps = []
        room = max(0, chars - (len(self.text) - self.end + self.start))
        if self.are_lines:
            rows = self._rows(self.start, self.end)
            body = "\n".join(self._choose_rows(rows, self.start, room, 0))
        else:
            body = self._value(self.start, self.end, room, 0)
        notice = " ".join(describe("JSON lines" if self.are_lines else "JSON", "", self._gaps))
        return self.text[: self.start] + _with_notice(body, notice, self.are_lines) + self.text[self.end :]

    def _value(self, start: int, end: int, room: int, depth: int) -> str:
        if end - start <= room:
            return self.text[start:end]
        opening = self.text[start]
        if opening == '"':
            return self._string(start, end, room)
        if opening not in "[{" or depth > _MAX_DEPTH:
            return _quoted(self._gap(start, end, f"{end - start:,} characters").mark)
        rows = self._rows(start, end)
        if not rows.spans:
            return f"{opening}{self.text[end - 1]}"
        spans, head = rows.spans, self.text[start : rows.spans[0][0]]
        tail = self.text[spans[-1][1] : end]
        between = self.text[spans[0][1] : spans[1][0]] if len(spans) > 1 else ","
        room -= len(head) + len(tail)
        sizes = [stop - begin + len(between) for begin, stop in spans]
        if len(spans) <= _MAX_LEVELED and len(spans) * _MIN_SHARE <= room:
            shares = level(sizes, room)
            members = [
                self._member(rows, index, share - len(between), depth) for index, share in enumerate(shares)
            ]
        else:
            members = self._choose_rows(rows, start, room, depth)
        return head + between.join(members) + tail

    def _member(self, rows: _Rows, index: int, room: int, depth: int) -> str:
        (begin, _), (start, end) = rows.spans[index], rows.values[index]
        key = self.text[begin:start]
        try:
            return key + self._value(start, end, max(0, room - len(key)), depth + 1)
        except ValueError:  # a line that is not JSON among lines that are
            return _quoted(self.text[start : start + max(0, room)])

    def _choose_rows(self, rows: _Rows, start: int, room: int, depth: int) -> list[str]:
        """Return the rows that fit, with marks for the others."""
        spans, max_chars = rows.spans, max(_MIN_ROW, room // _ROW_SHARE)
        layers = rows.layers or self._rank_rows(rows, start)
        sizes = [min(end - begin, max_chars) for begin, end in spans]
        chosen = choose(sizes, layers, room)
        is_object = spans and spans[0] != rows.values[0]
        parts, before = [], 0
        for index in [*chosen, len(spans)]:
            if before < index:
                gap = self._gap(spans[before][0], spans[index - 1][1], f"items {before + 1}-{index}")
                parts.append(_quoted(gap.mark) + (': ""' if is_object else ""))
            if index < len(spans):
                parts.append(self._member(rows, index, max_chars, depth))
            before = index + 1
        return parts

    def _rank_rows(self, rows: _Rows, start: int) -> Sequence[Layer]:
        texts = [self.text[begin : min(end, begin + _MAX_COMPARED)] for begin, end in rows.spans]
        lines = Lines(Pieces(texts, range(1, len(texts) + 1)))
        layers = (
            Layer([*range(min(2, lines.count)), lines.count - 1], 0.3),
            Layer(lines.alarming, 0.15),
            Layer(lines.rare, 0.4),
            Layer(list(edges(lines.count)), 1),
        )
        self._known[start] = _Rows(rows.spans, rows.values, layers)
        return layers

    def _string(self, start: int, end: int, room: int) -> str:
        is_ascii = "\\u" in self.text[start:end]
        value = str(_scan(self.text, start)[0])
        if room >= _MIN_TEXT and "\n" in value:
            if start not in self._texts:
                self._texts[start] = LineCut.of(value, room)
            shorter = self._texts[start].keep(int(room * 0.9))[1]
        else:
            kept = max(0, room - 40)
            gap = self._gap(start, end, f"{len(value) - kept:,} characters")
            shorter = value[: kept - kept // 3] + gap.mark + value[len(value) - kept // 3 :]
        return _quoted(shorter, is_ascii=is_ascii)

    def _rows(self, start: int, end: int) -> _Rows:
        if start not in self._known:
            if self.are_lines and start == self.start:
                spans = list(_line_spans(self.text, start, end))
                self._known[start] = _Rows(spans, spans)
            else:
                self._known[start] = _members(self.text, start)
        return self._known[start]

    def _gap(self, start: int, end: int, part: str) -> Gap:
        """Record a gap, named by its lines if it spans several, else by `part`, and return it."""
        if not self._line_ends:
            self._line_ends = list(itertools.accumulate(len(line) + 1 for line in self.text.split("\n")))
        first = bisect.bisect_right(self._line_ends, start) + 1
        last = bisect.bisect_right(self._line_ends, end - 1) + 1
        gap = Gap(first, last, end - start, "" if self.are_lines or last > first else part)
        self._gaps.append(gap)
        return gap


def find_json(text: str) -> JsonBody | None:
    """Return the JSON that a text consists of, apart from a few lines around it; None if there is none."""
    return _find_lines(text) or _find_value(text)


def _find_value(text: str) -> JsonBody | None:
    position = 0
    for _ in range(_MAX_FRAME_LINES):
        match = _SPACE.match(text, position)
        start = match.end() if match else position
        if text[start : start + 1] in ("[", "{", '"') and start <= _MAX_FRAME:
            end = _value_end(text, start)
            if end and len(text) - end <= _MAX_FRAME and (text[start] != '"' or not text[end:].strip()):
                return JsonBody(text, start, end)
        position = text.find("\n", start) + 1
        if not 0 < position <= _MAX_FRAME:
            return None
    return None


def _value_end(text: str, start: int) -> int:
    try:
        return _scan(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _find_lines(text: str) -> JsonBody | None:
    """Return the text as JSON Lines if every line is a JSON value."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    first = text.lstrip().partition("\n")[0].rstrip()
    if _value_end(first, 0) != len(first):
        return None
    spans = _line_spans(text, 0, len(text))
    if len(spans) > 1 and all(_value_end(text, start) == end for start, end in spans):
        return JsonBody(text, 0, len(text), are_lines=True)
    return None


def _line_spans(text: str, start: int, end: int) -> list[_Span]:
    spans, position = [], start
    for line in text[start:end].split("\n"):
        stripped = line.strip()
        if stripped:
            begin = position + line.index(stripped[0])
            spans.append((begin, begin + len(stripped)))
        position += len(line) + 1
    return spans


def _members(text: str, start: int) -> _Rows:
    """Return the positions of the members of the array or object at `start`."""
    is_object = text[start] == "{"
    spans: list[_Span] = []
    values: list[_Span] = []
    position = _skip_space(text, start + 1)
    while text[position] not in "]}":
        begin = position
        if is_object:
            match = _STRING.match(text, position)
            position = _skip_space(text, match.end() if match else position)
            position = _skip_space(text, position + 1)
        end = _scan(text, position)[1]
        spans.append((begin, end))
        values.append((position, end))
        position = _skip_space(text, end)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return _Rows(spans, values)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _quoted(text: str, *, is_ascii: bool = False) -> str:
    return json.dumps(text, ensure_ascii=is_ascii)


def _with_notice(body: str, notice: str, are_lines: bool) -> str:
    """Append a notice to JSON as its last value, on its own line."""
    if are_lines:
        return f"{body}\n{_quoted(notice)}"
    if body[:1] == '"':
        return f"{body[:-1]}\\n{_quoted(notice)[1:]}"
    inner = body[:-1].rstrip()
    comma = "," if len(inner) > 1 else ""
    entry = _quoted(notice) if body[0] == "[" else f'"[truncated]": {_quoted(notice)}'
    return f"{inner}{comma}\n{entry}\n{body[-1]}"
