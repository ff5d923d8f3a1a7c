"""How search hits are shown: a short message between its neighbors, of a long one the best lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rolling_chat.message_lines import RECALL, piece_lines, speaker_of
from rolling_chat.messages import Message
from rolling_chat.search_ranking import Found
from rolling_chat.text import one_line
from rolling_chat.tools.memory import Counter

_MAX_TOKENS = 400  # of one hit
_OF_ITSELF = 280  # tokens of a long hit's own lines; the rest is for its neighbors
_HEAD = 24  # tokens of the line that names it
_SHOWN = 400  # characters of a line
_MAX_CHARACTERS = 2_400  # of a neighbor that is shown at all: more could not fit
_MIN_NEIGHBOR = 12  # tokens; less says nothing


@dataclass(frozen=True, slots=True)
class Hits:
    """Writes the hits of a search in a branch; beside them only messages that are not hidden are shown."""

    branch: Sequence[Message]
    hidden: frozenset[int]
    counter: Counter

    def shown(self, found: Iterable[Found], most: int) -> list[str]:
        """Return an entry a hit, without those that another entry shows whole beside it."""
        entries: list[str] = []
        beside: set[int] = set()
        for one in found:
            if len(entries) == most:
                break
            if one.index in beside:
                continue
            entry, whole = self._entry(one)
            entries.append(entry)
            beside |= whole
        return entries

    def _entry(self, found: Found) -> tuple[str, set[int]]:
        """Return what is shown of a hit, and the neighbors that are whole in it."""
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
        """Return all lines of a short message, of a long one the best with their neighbors, as fit."""
        if sum(map(len, lines)) <= _MAX_CHARACTERS:
            everything = [_line(lines, at) for at in range(len(lines)) if lines[at].strip()]
            if sum(map(self._size, everything)) <= _OF_ITSELF:
                return everything
        wanted = dict.fromkeys(
            [at for one in best[:1] for at in (one, one - 1, one + 1)]
            + list(best)
            + [at for one in best for at in (one - 1, one + 1)]
        )
        kept: dict[int, str] = {}
        room = _OF_ITSELF
        for at in wanted:
            if not 0 <= at < len(lines) or not lines[at].strip():
                continue
            line = _line(lines, at)
            if not kept and self._size(line) > room:
                line = line[: room // 2]  # even where a character is two tokens
            if (size := self._size(line)) <= room:
                kept[at] = line
                room -= size
        return [kept[at] for at in sorted(kept)]

    def _neighbor(self, index: int, room: int) -> tuple[str, bool]:
        """Return what was said right before or after a hit in `room` tokens, and whether it is whole."""
        if not 1 <= index <= len(self.branch) or index in self.hidden or room < _MIN_NEIGHBOR:
            return "", False
        message = self.branch[index - 1]
        text = message.prose.strip()
        if message.role == "tool" or not text or any(call.name == RECALL for call in message.tool_calls):
            return "", False
        line = f"  (r{index} {speaker_of(message)}: {one_line(text, _MAX_CHARACTERS)})"
        if len(text) < _MAX_CHARACTERS and self._size(line) <= room:
            return line, not message.tool_calls
        line = f"  (r{index} {speaker_of(message)}: {one_line(text, room)})"  # a character is a token at most
        return (line, False) if self._size(line) <= room else ("", False)

    def _size(self, line: str) -> int:
        return self.counter.count_text(line) + 1 if line else 0


def _line(lines: Sequence[str], at: int) -> str:
    return f"  {at + 1}: {one_line(lines[at], _SHOWN)}"
