"""The fate of every transcript item, taken from the same report as the gauge and `/context`.

No Textual here. Fates are computed on lookup: a long session has many items, and few are on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat import figures
from rolling_chat.commands.context import size_of
from rolling_chat.context.report import Fate, PromptReport, Row
from rolling_chat.context.turns import opens_turn
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError, PartlyRead
from rolling_chat.tui.state.items import call_id, file_id, items_of, reasoning_id

_GONE = frozenset({Fate.SUMMARIZED, Fate.OMITTED})
_COUNTED_FATES = (Fate.SUMMARIZED, Fate.OMITTED, Fate.EXCLUDED, Fate.REPAIRED)
_CALL, _FILE = call_id("", 0).removesuffix("0"), file_id("", 0).removesuffix("0")
_THINKING = reasoning_id("")


@dataclass(frozen=True, slots=True)
class ItemFate:
    """How the transcript shows an item's fate, that is, what the next request does with it.

    `dimmed`: nothing of it is sent; masked and shortened items are sent in part and are not dimmed. `note`
    is its tokens and its fate in the words of `/context`: `4,963 → 898 tokens · shortened`.
    """

    dimmed: bool
    note: str


@dataclass(frozen=True, slots=True)
class Fates:
    """The fates of a branch's items, and where the context begins.

    `items` maps item ids to fates, for items not sent unchanged and for every answered tool call.
    `boundary` is the first item of the first message sent after the last dropped turn; empty if no turn
    was dropped. Pinned messages and the task may be sent from before it: they are not dimmed, and `rule`
    counts them. `rule` is the text of the line above the boundary.
    """

    items: Mapping[str, ItemFate] = field(default_factory=lambda: MappingProxyType({}))
    boundary: str = ""
    rule: str = ""


class MessageIndices:
    """An index from message ids to positions in a branch, extended as the branch grows."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._known = range(0)
        self._last = ""  # the id of the last known message

    def of(self, messages: Sequence[Message]) -> Mapping[str, int]:
        """Return the index of every message of a branch that has been read, by message id."""
        first, found = (messages.unread, messages.found) if isinstance(messages, PartlyRead) else (0, {})
        known, end = self._known, len(messages)
        # a message has the same ancestors on every branch that contains it
        if not (known and first <= known.start and known.stop <= end) or messages[known[-1]].id != self._last:
            known = range(0)
        if not known:
            self._places, known = {}, range(end, end)
        for part in (range(first, known.start), range(known.stop, end)):
            self._places.update((messages[place].id, place) for place in part)
        self._places.update((message.id, place) for place, message in found.items())
        self._known, self._last = range(first, end), messages[-1].id if first < end else ""
        return self._places


def item_fates(
    messages: Sequence[Message], report: PromptReport, places: Mapping[str, int] | None = None
) -> Fates:
    """Return the fates of the items of `messages`, a whole branch without the system message.

    `places` maps their ids to indices, if that is known already. Messages that are not in `report`,
    because they are newer or of another branch, have no fate.
    """
    rows = _BranchRows(messages, report)
    boundary = _boundary(rows) if report.count(*_GONE) else 0
    item_id = _first_item(rows, boundary) if boundary else ""
    items = _ItemFates(rows, places or MessageIndices().of(messages))
    return Fates(items, item_id, _rule(rows, boundary) if item_id else "")


class _BranchRows:
    """The rows of a report, by the index of their message in the branch."""

    def __init__(self, messages: Sequence[Message], report: PromptReport) -> None:
        self.messages = messages
        self.report = report
        # a partly read branch comes from a session, and those have no system message
        begins = not isinstance(messages, PartlyRead) and bool(messages) and messages[0].role == "system"
        self._shift = int(bool(report.rows) and report.rows[0].role == "system" and not begins)

    def __len__(self) -> int:
        return min(len(self.messages), len(self.report.rows) - self._shift)

    def get(self, place: int) -> Row | None:
        """Return the row of the message at index `place`; None if it is not in the report."""
        if not 0 <= place < len(self):
            return None
        try:
            row = self.report.rows[place + self._shift]
            return row if row.id == self.messages[place].id else None
        except NotReadError:
            return None

    def fate(self, place: int) -> Fate | None:
        row = self.get(place)
        return row.fate if row is not None else None


class _ItemFates(Mapping[str, ItemFate]):
    """Fates by item id, each computed on lookup."""

    def __init__(self, rows: _BranchRows, places: Mapping[str, int]) -> None:
        self._rows = rows
        self._places = places

    def __getitem__(self, item_id: str) -> ItemFate:
        fate = self._fate(item_id)
        if fate is None:
            raise KeyError(item_id)
        return fate

    def __iter__(self) -> Iterator[str]:
        for message in self._rows.messages:
            calls = (call_id(message.id, index) for index in range(len(message.tool_calls)))
            thinking = (reasoning_id(message.id),) if message.role == "assistant" else ()
            files = (file_id(message.id, index) for index in range(len(message.attachments)))
            for item_id in (*thinking, message.id, *files, *calls):
                if self._fate(item_id) is not None:
                    yield item_id

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _fate(self, item_id: str) -> ItemFate | None:
        place = self._places.get(item_id)
        if place is not None:
            return self._of_message(place)
        if item_id.endswith(_THINKING) or _FILE in item_id:
            place = self._places.get(item_id.removesuffix(_THINKING).partition(_FILE)[0])
            return self._of_message(place) if place is not None else None
        reply_id, _, index = item_id.rpartition(_CALL)
        place = self._places.get(reply_id)
        return self._of_call(place, int(index)) if place is not None and index.isdecimal() else None

    def _of_message(self, place: int) -> ItemFate | None:
        messages, row = self._rows.messages, self._rows.get(place)
        if row is None:
            return None
        if messages[place].role == "tool":
            return _item_fate(row) if self._stands_alone(place) else None
        # shortening the arguments of a reply's calls leaves its text unchanged
        is_whole = row.fate is Fate.SENT or row.layer == "arguments"
        return None if is_whole else _item_fate(row)

    def _of_call(self, reply: int, index: int) -> ItemFate | None:
        """Return the fate of a tool call and its result, which are shown as one item."""
        messages, made, place = self._rows.messages, self._rows.get(reply), reply + 1 + index
        if made is None or index >= len(messages[reply].tool_calls):
            return None
        answers = messages[reply + 1 : place + 1]
        is_answered = len(answers) == index + 1 and all(answer.role == "tool" for answer in answers)
        result = self._rows.get(place) if is_answered else None
        if result is None:
            return None if made.fate is Fate.SENT else _item_fate(made)
        fate = _item_fate(result)
        if made.layer == "arguments":
            return ItemFate(fate.dimmed, f"{fate.note} · arguments shortened")
        return fate

    def _stands_alone(self, place: int) -> bool:
        """Return whether a result has an item of its own, because it answers no call."""
        messages, reply = self._rows.messages, place
        while reply and messages[reply].role == "tool":
            reply -= 1
        return messages[reply].role == "tool" or place - reply > len(messages[reply].tool_calls)


def _item_fate(row: Row) -> ItemFate:
    tokens = f"{size_of(row)} tokens"
    return ItemFate(not row.tokens_after, tokens if row.fate is Fate.SENT else f"{tokens} · {row.fate.word}")


def _boundary(rows: _BranchRows) -> int:
    """Return the index of the first message sent after the last dropped turn; 0 if none was dropped.

    A turn counts as dropped if its last message was; one cut down to request and answer keeps that.
    """
    messages, end = rows.messages, len(rows)
    for place in reversed(range(end)):
        is_last = place + 1 == end or opens_turn(messages, place + 1)
        if is_last and rows.fate(place) in _GONE:
            later = range(place + 1, end)
            return next((at for at in later if (row := rows.get(at)) and row.tokens_after), 0)
    return 0


def _first_item(rows: _BranchRows, place: int) -> str:
    """Return the id of the first item at or after a message's index; tool results have no own item."""
    for message in rows.messages[place:]:
        items = items_of([message]) if message.role != "tool" else []
        if items:
            return items[0].id
    return ""


def _rule(rows: _BranchRows, boundary: int) -> str:
    """Return the text of the boundary line: `47 earlier messages: 31 summarized, 16 omitted`."""
    counts = _counts_before(rows, boundary)
    said = [f"{count:,} {fate.word}" for fate, count in counts.items() if count]
    others = boundary - sum(counts.values())
    if others:
        said.append(f"{others:,} still sent")
    all_of_them = figures.plural(boundary, "earlier message")
    if len(said) == 1:
        return f"{all_of_them} {said[0].partition(' ')[2]}"
    return f"{all_of_them}: {', '.join(said)}"


def _counts_before(rows: _BranchRows, boundary: int) -> dict[Fate, int]:
    """Count the unsent or altered messages before `boundary` by fate; walks the shorter side."""
    counts = dict.fromkeys(_COUNTED_FATES, 0)
    if 2 * boundary <= len(rows):
        side, sign = range(boundary), 1
    else:
        side, sign = range(boundary, len(rows)), -1
        counts = {fate: rows.report.count(fate) for fate in counts}
    for place in side:
        fate = rows.fate(place)
        if fate in counts:
            counts[fate] += sign
    return counts
