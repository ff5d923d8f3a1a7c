"""Transcript items: the entries shown on the screen, as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.call_lines import describe_call
from rolling_chat.commands.marks import Mark, mark_of
from rolling_chat.lazily import LazyText
from rolling_chat.message_words import reasoning_text, shown_instead
from rolling_chat.messages import Ending, Message
from rolling_chat.task_record import FAILED, TaskRecord, record_in
from rolling_chat.text import one_line
from rolling_chat.tools.run_command import outcome_of

if TYPE_CHECKING:
    from rolling_chat.agent import PinScope

_INDICATOR = re.compile(r"\[truncated: kept [a-z+]+ ~(\d+) of ~(\d+) tokens \((auto|head|tail|both)\)\]")
ABOUT_CHARS_PER_TOKEN = 4
_MAX_OUTCOME_CHARS = 60
_MAX_NOTE_CHARS = 80
NOTHING_COUNTED: Mapping[str, int] = MappingProxyType({})
_CHANGED_LINES = re.compile(r"\+[\d,]+ -[\d,]+$")


class Kind(StrEnum):
    """The kind of an item of the transcript."""

    USER = "user"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    TOOL = "tool"
    NOTICE = "notice"
    ATTACHED = "attached"


FOLDED_KINDS = (Kind.REASONING, Kind.TOOL, Kind.ATTACHED)


class Status(StrEnum):
    """The state of an item; each has a glyph or a word of its own."""

    DONE = "done"
    LIVE = "live"  # still growing, or running
    FORMING = "forming"  # a tool call that the model is writing
    ASKING = "asking"  # a tool call waiting for approval
    CUT = "cut"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the transcript.

    `source` is its unprocessed text, `result` the text shown when it is unfolded (a tool's result); both may
    be lazy views of a message.
    A tool's line ends with its `outcome` unless it plainly succeeded (`exit 1`, why a file could not be
    read), its `note` and how long it `took`. `mark` says whether the user pinned or excluded the message,
    `form` that the model wrote a call as text. `task` holds the figures of a call that began a task, and
    `live` the current activity of a running one.
    """

    id: str
    kind: Kind
    source: str | LazyText
    status: Status = Status.DONE
    result: str | LazyText = ""
    note: str = ""
    outcome: str = ""
    took: str = ""
    mark: Mark = Mark.NONE
    form: str = ""
    task: TaskRecord | None = None
    live: str = ""

    @property
    def text(self) -> str:
        """The item's text."""
        return str(self.source)

    @property
    def detail(self) -> str:
        """The text that unfolding the item shows."""
        return str(self.result)


_STRONGER = (Mark.NONE, Mark.ALONG, Mark.PINNED, Mark.EXCLUDED)

_STATUS_OF_ENDING = {
    Ending.COMPLETE: Status.DONE,
    Ending.LENGTH: Status.CUT,
    Ending.CANCELLED: Status.CANCELLED,
    Ending.FAILED: Status.FAILED,
    Ending.REFUSED: Status.REFUSED,
}


def status_of(ending: Ending) -> Status:
    """Return the status of an item, given how its message ended."""
    return _STATUS_OF_ENDING[ending]


def items_of(messages: Iterable[Message], tokens: Mapping[str, int] = NOTHING_COUNTED) -> list[Item]:
    """Return the items of stored messages, oldest first; the system message has none.

    `tokens` are the known sizes of tool results, by message id.
    """
    items: list[Item] = []
    for message in messages:
        match message.role:
            case "user":
                items.extend(user_items(message))
            case "assistant":
                items.extend(reply_items(message))
            case "tool":
                _answer(items, message, tokens.get(message.id, 0))
            case _:
                pass
    return items


def item_marks(messages: Sequence[Message], held: PinScope) -> dict[str, Mark]:
    """Return the marks of pinned and excluded items by id; an answered call takes its result's mark too."""
    marks: dict[str, Mark] = {}
    if not held:
        return marks
    reply, answers = "", 0
    for message in messages:
        mark = mark_of(message.id, held)
        if message.role == "tool":
            item_id = call_id(reply, answers) if reply else message.id
            marks[item_id] = max(mark, marks.get(item_id, Mark.NONE), key=_STRONGER.index)
            answers += 1
            continue
        reply, answers = (message.id, 0) if message.tool_calls else ("", 0)
        marks |= dict.fromkeys((message.id, reasoning_id(message.id)), mark)
        marks |= {call_id(reply, index): mark for index in range(len(message.tool_calls))}
    return {item_id: mark for item_id, mark in marks.items() if mark}


def item_showing(messages: Sequence[Message], message_id: str) -> tuple[str, bool]:
    """Return the id of the item that shows a message, and whether it is folded; empty if none does.

    A tool result is shown by its call's item, a reply without text by its first item. For a message
    without any item, the next one that has some is used.
    """
    at = next((index for index, message in enumerate(messages) if message.id == message_id), len(messages))
    if at < len(messages) and messages[at].role == "tool":
        reply = at
        while reply and messages[reply].role == "tool":
            reply -= 1
        call = at - reply - 1
        if messages[reply].role == "assistant" and call < len(messages[reply].tool_calls):
            return call_id(messages[reply].id, call), True
        return message_id, True
    shown = (items_of([message]) for message in messages[at:])
    items = next((items for items in shown if items), [])
    own = next((item for item in items if item.id == message_id), items[0] if items else None)
    return (own.id, own.kind is Kind.REASONING) if own is not None else ("", False)


def user_items(message: Message) -> list[Item]:
    """Return the items of a user message: its text, and a line for each attached file."""
    attachments = message.attachments
    if not attachments:
        return [Item(message.id, Kind.USER, LazyText(message))]
    items = [Item(message.id, Kind.USER, message.words)]
    for index, one in enumerate(attachments):
        price = f"{figures.tokens(one.tokens)} tokens" if one.tokens else ""
        # an imported note may contain anything
        note = " · ".join(part for part in (one_line(one.note, _MAX_NOTE_CHARS), price) if part)
        items.append(Item(file_id(message.id, index), Kind.ATTACHED, one.mention, result=one.text, note=note))
    return items


def reply_items(message: Message) -> list[Item]:
    """Return the items of a complete reply: its reasoning, its text, its tool calls."""
    items: list[Item] = []
    thought = reasoning_text(message)
    status = status_of(message.ending)
    if thought:
        items.append(Item(reasoning_id(message.id), Kind.REASONING, thought))
    if message.prose.strip() or status is not Status.DONE:
        source = message.prose if message.writes_calls else LazyText(message)
        items.append(Item(message.id, Kind.ASSISTANT, source, status))
    form = "as text" if message.writes_calls else ""
    for index, call in enumerate(message.tool_calls):
        described = describe_call(call)
        items.append(Item(call_id(message.id, index), Kind.TOOL, described, Status.FORMING, form=form))
    return items


def reasoning_id(reply_id: str) -> str:
    """Return the id of the item that shows a reply's reasoning."""
    return f"{reply_id}:thinking"


def file_id(message_id: str, index: int) -> str:
    """Return the id of the item that shows a file attached to a message."""
    return f"{message_id}:file:{index}"


def call_id(reply_id: str, index: int) -> str:
    """Return the id of the item of a reply's tool call; the model's own call ids may repeat."""
    return f"{reply_id}:call:{index}"


def answered(item: Item, message: Message, seconds: float | None = None, tokens: int = 0) -> Item:
    """Return the item of a tool call with its result filled in; `tokens` is the result's size if known.

    If a file was changed, the item's line ends with the number of changed lines.
    """
    changed = _CHANGED_LINES.search(message.text) if shown_instead(message) else None
    return replace(
        item,
        source=f"{item.text} {changed[0]}" if changed else item.source,
        status=status_of(message.ending),
        result=shown_instead(message) or LazyText(message),
        note=result_note(message, tokens),
        outcome=_outcome(message),
        task=record_in(message) or item.task,
        live="",
        took=f"{seconds:.0f} s" if seconds is not None and seconds >= 1 else "",
    )


def result_note(message: Message, tokens: int = 0) -> str:
    """Return the size note of a tool result that is in no report yet: `52k → 8k tokens · head`.

    `tokens` is its size, 0 if it was never counted.
    """
    text = message.text
    cut = _INDICATOR.search(text)
    if cut:
        kept, whole, how = int(cut[1]), int(cut[2]), cut[3]
        return f"{figures.tokens(whole)} → {figures.tokens(kept)} tokens · {how}"
    if tokens:
        return f"{figures.tokens(tokens)} tokens"
    return f"~{figures.tokens(len(text) // ABOUT_CHARS_PER_TOKEN)} tokens"


def _outcome(message: Message) -> str:
    """Return in a few words why a tool call did not plainly succeed; empty if it did."""
    command = outcome_of(message.text) if message.name == "run_command" else ""
    if command or message.ending is not Ending.FAILED:
        return command
    reason = message.text.partition("\n")[0].removeprefix(FAILED)
    return one_line(reason, _MAX_OUTCOME_CHARS).removesuffix(".")


def _answer(items: list[Item], message: Message, tokens: int) -> None:
    """Add a result to the oldest unanswered call of the newest reply, or as its own item if there is none."""
    index = len(items)
    while index and items[index - 1].kind is Kind.TOOL and items[index - 1].status is Status.FORMING:
        index -= 1
    if index < len(items):
        items[index] = answered(items[index], message, tokens=tokens)
    else:
        item = Item(message.id, Kind.TOOL, message.name or "tool")
        items.append(answered(item, message, tokens=tokens))
