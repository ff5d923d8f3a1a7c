"""recall: reads back earlier messages and results of this session, including those not in the prompt."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolling_chat.figures import plural
from rolling_chat.message_lines import RECALL, piece_lines, speaker_of
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.text import one_line
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_count, read_text
from rolling_chat.tools.memory import Memory
from rolling_chat.tools.memory_grep import matching_lines
from rolling_chat.tools.memory_search import search_branch
from rolling_chat.tools.recall_hits import Hits
from rolling_chat.tools.recall_mentions import newest_mentions

_MODES = ("head", "tail", "lines", "grep")
_MAX_FOUND = 8  # hits that a search shows
_MAX_RANKED = 3 * _MAX_FOUND  # hits to rank, of which some are shown as neighbors of others
_MAX_RANGES = 200  # ranges in one id; a notice may name many
_MAX_LISTED = 70  # characters of a message in a listing
_FRAMING = 24  # tokens reserved for text around the lines
_MAX_CHARACTERS_PER_TOKEN = 24  # only white space has more, so longer texts need not be counted

_DESCRIPTION = (
    "Read back earlier parts of this conversation, also what left your context: give the `id` of a "
    "[recall: r17] line (r3-r9 lists several), or words to `search` for. `start` and `end` go with the mode "
    "lines, `pattern`, a regular expression, with grep."
)
# the reference of a shortened result to its missing lines: [recall: r17 lines 200-400, 900-950]
_NAMED_LINES = re.compile(
    r"\[?\s*(?:recall:)?\s*(r?\d{1,9})\s+lines?\s+(\d{1,9})(?:\s*-\s*(\d{1,9}))?.*", re.IGNORECASE | re.DOTALL
)
_RANGE = re.compile(r"\s*\[?(?:recall:)?\s*r?(\d{1,9})\s*(?:[-\u2013]\s*r?(\d{1,9}))?\]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recall:
    """The tool `recall(id, mode, start, end, pattern, search)`."""

    name: str = RECALL
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        text, number = {"type": "string"}, {"type": "integer"}
        return function_schema(
            self.name,
            _DESCRIPTION,
            {
                "id": text,
                "mode": text | {"enum": list(_MODES)},
                "start": number,
                "end": number,
                "pattern": text,
                "search": text,
            },
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return what the call reads or searches for."""
        words = (str(arguments.get(key) or "") for key in ("id", "mode", "pattern", "search"))
        return " ".join(filter(None, (self.name, *words)))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Read a part of one message, list several, or search, within the limit on results."""
        memory = context.memory
        if memory is None:
            raise ToolError("There is no conversation to read back here.")
        reader = _Reader(memory, await memory.branch())
        arguments = _with_named_lines(arguments)
        words = read_text(arguments, "search", default="").strip()
        ranges = read_ranges(arguments["id"], len(reader.branch), reader.known) if arguments.get("id") else []
        is_one = len(ranges) == 1 and len(ranges[0]) == 1
        if not ranges and not words:
            raise ToolError(f"Give an id ({reader.known}) or words to search for.")
        if is_one and not words and _mode(arguments) == "grep":
            return ToolResult(await reader.grep(ranges[0][0], read_text(arguments, "pattern")))
        return ToolResult(await asyncio.to_thread(_answer, reader, ranges, words, arguments))


def _answer(reader: _Reader, ranges: Sequence[range], words: str, arguments: JsonObject) -> str:
    """Return the result of a call that needs no process: a search, a listing, or some lines."""
    if words:
        return reader.search(words, ranges)
    if len(ranges) > 1 or len(ranges[0]) > 1:
        return reader.listing(list(itertools.chain.from_iterable(ranges)))
    index = ranges[0][0]
    if _mode(arguments) == "tail":
        return reader.tail(index)
    start = read_count(arguments, "start", default=1) or 1
    return reader.lines(index, start, read_count(arguments, "end"))


def _with_named_lines(arguments: JsonObject) -> JsonObject:
    """Move the lines that an id names to `start` and `end`, unless the call has these."""
    match = _NAMED_LINES.fullmatch(str(arguments.get("id") or "").strip())
    if match is None:
        return arguments
    given = {key: value for key, value in arguments.items() if value is not None}
    return {"start": int(match[2]), "end": int(match[3] or match[2]), **given, "id": match[1]}


def read_ranges(given: object, length: int, known: str) -> list[range]:
    """Parse the message indices that an id names: `r17`, `17`, `r3-r9`, or several with commas.

    Raises ToolError, which lists the valid ids (`known`), if it names anything else.
    """
    parts = [part for part in str(given).split(",", _MAX_RANGES) if part.strip()][:_MAX_RANGES]
    ranges = []
    for part in parts or [""]:
        match = _RANGE.fullmatch(part)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else 0
        if match is not None and first == 0:
            raise ToolError(f"r0 is the system message, which is in every prompt; recall has {known}.")
        if not first <= last or first > length or not first:
            raise ToolError(f"There is no {one_line(part, 40)!r} here: this conversation has {known}.")
        ranges.append(range(first, min(last, length) + 1))
    return ranges


def _mode(arguments: JsonObject) -> str:
    """Return the requested mode, or the one that the other arguments imply."""
    mode = read_text(arguments, "mode", default="").strip().lower()
    if mode and mode not in _MODES:
        raise ToolError(f"There is no mode {one_line(mode, 40)!r}. The modes are: {', '.join(_MODES)}.")
    return mode or ("grep" if arguments.get("pattern") else "lines")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes answers that fit the limit on results, each with a line that says how to continue."""

    memory: Memory
    branch: Sequence[Message]

    @property
    def known(self) -> str:
        return f"r1 to r{len(self.branch)}" if self.branch else "nothing yet"

    def lines(self, index: int, first: int, last: int | None) -> str:
        """Return lines `first` to `last`, as many as fit from the beginning."""
        head, lines = self._open(index)
        total = len(lines)
        if first > total:
            raise ToolError(f"r{index} has {total:,} lines; line {first:,} is beyond its end.")
        if last is not None and last < first:
            raise ToolError(f"The argument 'end' ({last}) must not be below 'start' ({first}).")
        last = min(last or total, total)
        kept = self._fitting(lines[first - 1 : last], self._room(head))
        shown = first + len(kept) - 1
        if shown < last:
            note = f"[lines {first}-{shown} of {total}; go on with mode=lines start={shown + 1}]"
        else:
            note = "" if (first, last) == (1, total) else f"[lines {first}-{last} of {total}]"
        return _joined(head, kept, after=note)

    def tail(self, index: int) -> str:
        """Return as many lines as fit from the end."""
        head, lines = self._open(index)
        kept = self._fitting(lines[::-1], self._room(head))[::-1]
        first = len(lines) - len(kept) + 1
        note = f"[lines {first}-{len(lines)} of {len(lines)}; before them: mode=lines end={first - 1}]"
        return _joined(head, kept, before=note if first > 1 else "")

    async def grep(self, index: int, pattern: str) -> str:
        """Return the matching lines, numbered, with their neighbors."""
        head, lines = self._open(index)
        numbers, note = await matching_lines(lines, pattern)
        if not numbers:
            raise ToolError(
                f"No line of r{index} matches {one_line(pattern, 60)!r}; it has {len(lines):,} lines: "
                "try fewer or other words, or mode=head."
            )
        shown = list(_in_context(lines, numbers))
        kept = self._fitting(shown, self._room(head))
        count = f"[{len(numbers):,} of {len(lines):,} lines match{note}]"
        is_cut = len(kept) < len(shown)
        more = f"[cut here; go on with mode=lines start={_number(shown[len(kept)])}]" if is_cut else ""
        return _joined(head, kept, before=count, after=more)

    def listing(self, indexes: Sequence[int]) -> str:
        """Return one line per message, as many as fit."""
        lines: list[str] = []
        room = self._room("")
        for index in indexes:
            line = self._entry(index)
            room -= self.memory.estimator.count_text(line) + 1
            if room < 0 and lines:
                lines.append(f"[{len(indexes) - len(lines):,} more; go on with id=r{index}-r{indexes[-1]}]")
                break
            lines.append(line)
        return "\n".join(lines)

    def search(self, words: str, within: Sequence[range] = ()) -> str:
        """Return the messages that contain the words, best first, each with its best lines."""
        everything = range(1, len(self.branch) + 1)
        where = set(itertools.chain.from_iterable(within)) if within else everything
        hidden = self._hidden()
        found = search_branch(self.branch, words, where, _MAX_RANKED, hidden=hidden)
        if not found:
            raise ToolError(
                f"Nothing that was said or done earlier holds {one_line(words, 60)!r}: try other words or "
                f"fewer, or list messages by id ({self.known})."
            )
        hits = Hits(self.branch, hidden, self.memory.estimator).shown(found, _MAX_FOUND)
        mentions = newest_mentions(self.branch, words, where, hidden, "\n".join(hits))
        kept = self._fitting([*hits, *mentions], self._room(""))
        note = "[best first; recall with id reads the whole of one]"
        return "\n".join((*kept, note))

    def _hidden(self) -> frozenset[int]:
        """Return the indices of excluded messages and of the request that is being answered."""
        backwards = range(len(self.branch), 0, -1)
        request = next((at for at in backwards if self.branch[at - 1].role == "user"), 0)
        if not (excluded := self.memory.excluded):
            return frozenset((request,))
        return frozenset((request, *(at for at in backwards if self.branch[at - 1].id in excluded)))

    def _entry(self, index: int) -> str:
        message = self.branch[index - 1]
        if message.id in self.memory.excluded:
            return f"r{index} {speaker_of(message)}: [excluded by the user]"
        begins = one_line(" ".join(piece_lines(message)[:4]), _MAX_LISTED) or "[nothing]"
        tokens = self.memory.estimator.count_message(message)
        return f"r{index} {speaker_of(message)}, ~{tokens:,} tokens: {begins}"

    def _open(self, index: int) -> tuple[str, list[str]]:
        """Return a heading for the message, and its lines. Raises ToolError if it is excluded."""
        message = self.branch[index - 1]
        if message.id in self.memory.excluded:
            raise ToolError(f"r{index} was excluded by the user and cannot be read back.")
        lines = piece_lines(message)
        return f"[r{index}: {speaker_of(message)}, {plural(len(lines), 'line')}]", lines

    def _room(self, head: str) -> int:
        return self.memory.cap - self.memory.estimator.count_text(head) - 2 * _FRAMING

    def _fitting(self, lines: Sequence[str], room: int) -> list[str]:
        """Return as many of `lines` as fit `room` tokens, or a part of the first if it alone is too long."""
        characters, high = 0, 0
        for high, line in enumerate(lines, start=1):  # noqa: B007  # used after the loop
            characters += len(line) + 1
            if characters > max(room, 1) * _MAX_CHARACTERS_PER_TOKEN:
                break
        low = 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.memory.estimator.count_text("\n".join(lines[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        if low or not lines:
            return list(lines[:low])
        line = lines[0]
        while line and self.memory.estimator.count_text(line) > room:
            line = line[: len(line) // 2]
        return [f"{line}…"]


def _in_context(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[str]:
    """Yield the lines with these numbers (from 1) marked `:`, and their neighbors marked `-`, like grep."""
    matching = set(numbers)
    around = sorted({at for one in numbers for at in (one - 1, one, one + 1) if 1 <= at <= len(lines)})
    for at in around:
        yield f"{at}{':' if at in matching else '-'} {lines[at - 1]}"


def _number(line: str) -> str:
    match = re.match(r"\d+", line)
    return match[0] if match else "1"


def _joined(head: str, lines: Sequence[str], *, before: str = "", after: str = "") -> str:
    return "\n".join((head, *filter(None, (before,)), *lines, *filter(None, (after,))))
