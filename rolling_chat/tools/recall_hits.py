"""Format search hits: a short message with its neighbors, or the best lines of a long one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rolling_chat.message_lines import RECALL, piece_lines, speaker_of
from rolling_chat.messages import Message
from rolling_chat.search_ranking import Found
from rolling_chat.text import one_line
from rolling_chat.tools.memory import Counter

_MAX_TOKENS = 400  # of one hit
_MAX_OWN = 280  # tokens of a long hit's own lines; the rest is for its neighbors
_HEAD = 24  # tokens of the heading
_SHOWN = 400  # characters of a line
_MAX_CHARACTERS = 2_400  # of a neighbor; more would not fit
_MIN_NEIGHBOR = 12  # tokens; fewer are useless


@dataclass(frozen=True, slots=True)
class Hits:
    """Formats the hits of a search in a branch; hidden messages are not shown as neighbors."""

    branch: Sequence[Message]
    hidden: frozenset[int]
    counter: Counter

    def shown(self, found: Iterable[Found], limit: int) -> list[str]:
        """Return up to `limit` entries, one per hit, without hits shown whole as neighbors of others."""
        entries: list[str] = []
        neighbors: set[int] = set()
        for one in found:
            if len(entries) == limit:
                break
            if one.index in neighbors:
                continue
            entry, whole = self._entry(one)
            entries.append(entry)
            neighbors |= whole
        return entries

    def _entry(self, found: Found) -> tuple[str, set[int]]:
        """Return the entry of a hit, and the indices of neighbors that it shows whole."""
        message = self.branch[found.index - 1]
        lines = piece_lines(message)
        own = self._own_lines(lines, found.lines or (0,))
        room = _MAX_TOKENS - _HEAD - sum(map(self._size, own))
        before = after = ""
        whole: set[int] = set()
        if message.role != "tool":
            before, is_whole = self._neighbor(found.index - 1, room // 2)
            whole |= {found.index - 1} if is_whole else set()
            after, is_whole = self._neighbor(found.index + 1, room - self._size(before))
            whole |= {found.index + 1} if is_whole else set()
        head = f"r{found.index} {speaker_of(message)}, line {found.line + 1} of {len(lines)}"
        return "\n".join(filter(None, (head, before, *own, after))), whole

    def _own_lines(self, lines: Sequence[str], best: Sequence[int]) -> list[str]:
        """Return all lines of a short message, or as many of the best lines and their neighbors as fit."""
        if sum(map(len, lines)) <= _MAX_CHARACTERS:
            everything = [_line(lines, at) for at in range(len(lines)) if lines[at].strip()]
            if sum(map(self._size, everything)) <= _MAX_OWN:
                return everything
        wanted = dict.fromkeys(
            [at for one in best[:1] for at in (one, one - 1, one + 1)]
            + list(best)
            + [at for one in best for at in (one - 1, one + 1)]
        )
        kept: dict[int, str] = {}
        room = _MAX_OWN
        for at in wanted:
            if not 0 <= at < len(lines) or not lines[at].strip():
                continue
            line = _line(lines, at)
            if not kept and self._size(line) > room:
                line = line[: room // 2]  # fits even if every character is two tokens
            if (size := self._size(line)) <= room:
                kept[at] = line
                room -= size
        return [kept[at] for at in sorted(kept)]

    def _neighbor(self, index: int, room: int) -> tuple[str, bool]:
        """Return a line with a hit's neighbor, within `room` tokens, and whether that is whole."""
        if not 1 <= index <= len(self.branch) or index in self.hidden or room < _MIN_NEIGHBOR:
            return "", False
        message = self.branch[index - 1]
        text = message.prose.strip()
        if message.role == "tool" or not text or any(call.name == RECALL for call in message.tool_calls):
            return "", False
        line = f"  (r{index} {speaker_of(message)}: {one_line(text, _MAX_CHARACTERS)})"
        if len(text) < _MAX_CHARACTERS and self._size(line) <= room:
            return line, not message.tool_calls
        # assume that a character is at most one token
        line = f"  (r{index} {speaker_of(message)}: {one_line(text, room)})"
        return (line, False) if self._size(line) <= room else ("", False)

    def _size(self, line: str) -> int:
        return self.counter.count_text(line) + 1 if line else 0


def _line(lines: Sequence[str], at: int) -> str:
    return f"  {at + 1}: {one_line(lines[at], _SHOWN)}"
