"""The screen's state: the events of an agent turn folded into plain values.

No Textual here: the controllers feed it, the widgets draw it. `now` is always passed in, in seconds of one
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rolling_chat.call_lines import describe_call
from rolling_chat.commands.marks import Mark
from rolling_chat.events import (
    CallForming,
    Event,
    Noticed,
    Outcome,
    PermissionAnswered,
    PermissionAsked,
    PromptPlanned,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    Steered,
    SummaryBegan,
    SummaryEnded,
    SummaryEvent,
    TaskEvent,
    TextAdded,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import Message, ToolCall
from rolling_chat.text import one_line
from rolling_chat.tui.state.item_list import ItemList, LoadedItems
from rolling_chat.tui.state.items import (
    ABOUT_CHARS_PER_TOKEN,
    NOTHING_COUNTED,
    Item,
    Kind,
    Status,
    answered,
    call_id,
    reasoning_id,
    reply_items,
    user_items,
)
from rolling_chat.tui.state.status_words import Activity, activity_words, duration, ending_words
from rolling_chat.tui.state.task_view import TaskView

_MIN_SECONDS = 0.5  # a rate over less time means nothing
WELCOME = (
    "The bar below shows what the next request takes of the model's window.",
    "/rolling-context drops old messages from a full prompt; they stay on disk.",
    "Connect a model with its API key or a local Ollama; /model chooses one.",
)
_WELCOME_ID = "welcome"
_MAX_DOING = 50  # characters of a call, so that the seconds after it stay in sight


@dataclass(slots=True)
class ScreenState:
    """Everything that the screen shows of the conversation and of the running turn.

    Each change increments `revision` and calls `listener`, which paints. `can_carry_on`: the last answer was
    cut at its limit or broke off. `said` is the last key's message, `doing` what a command waits for, and
    until `quit_until` another ctrl+c quits. `is_streaming`: the change came from a running turn.
    """

    items: ItemList = field(default_factory=ItemList)
    activity: Activity = Activity.IDLE
    subject: str = ""
    turn_began: float = 0.0
    reply_began: float = 0.0
    reply_chars: int = 0
    rate: float = 0.0
    last: str = ""
    can_carry_on: bool = False
    is_summarizing: bool = False
    said: str = ""
    doing: str = ""
    quit_until: float = 0.0
    is_streaming: bool = False
    revision: int = 0
    listener: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    _retry_at: float = 0.0
    _notices: int = 0
    _is_marked: bool = False
    _reply_items: dict[str, int] = field(default_factory=dict)
    _open_calls: list[int] = field(default_factory=list)
    _tasks: dict[str, tuple[int, TaskView]] = field(default_factory=dict)  # by session: item and view
    _loaded: LoadedItems = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._loaded = LoadedItems(self.items)

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self.activity is not Activity.IDLE

    def changed(self) -> None:
        """Increment `revision` and call the listener."""
        self.revision += 1
        if self.listener is not None:
            self.listener()

    def load(self, messages: Sequence[Message], tokens: Mapping[str, int] = NOTHING_COUNTED) -> None:
        """Show the messages of another or a changed conversation.

        `tokens` are the known sizes of tool results, by message id.
        """
        self._loaded.load(messages, tokens)
        self._reply_items.clear()
        self._open_calls.clear()
        self._tasks.clear()
        self.can_carry_on, self.last = False, ""
        self.changed()

    def prepend(self, messages: Sequence[Message], tokens: Mapping[str, int] = NOTHING_COUNTED) -> None:
        """Show older messages on top; they must end where a shown turn begins. `tokens` as for `load`."""
        self._loaded.prepend(messages, tokens)
        self.changed()

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Mark the items that are pinned or excluded, and clear all other marks."""
        if not marks and not self._is_marked:
            return
        for at in self.items.ordinals:
            item = self.items.at(at)
            mark = marks.get(item.id, Mark.NONE)
            if item.mark is not mark:
                self.items.put(at, replace(item, mark=mark))
                self.changed()
        self._is_marked = bool(marks)

    def notice(self, text: str, *, warning: bool = False) -> None:
        """Add a notice for the user."""
        self._notices += 1
        status = Status.WARNING if warning else Status.DONE
        self._add(Item(f"notice:{self._notices}", Kind.NOTICE, text, status))

    def welcome(self) -> None:
        """Add the introduction for a new user; the first message removes it."""
        for index, line in enumerate(WELCOME):
            self._add(Item(f"{_WELCOME_ID}:{index}", Kind.NOTICE, line))

    def _end_welcome(self) -> None:
        rest = [item for item in self.items if not item.id.startswith(_WELCOME_ID)]
        if len(rest) < len(self.items):
            self.items.clear(rest)

    def summary(self, event: SummaryEvent) -> None:
        """Show that a summary began or ended; a running turn continues."""
        match event:
            case SummaryBegan():
                self.is_summarizing = True
            case SummaryEnded(notice):
                self.is_summarizing = False
                if notice:
                    self.notice(notice)
        self.changed()

    def begin(self, now: float) -> None:
        """Begin a turn, before its first event arrives."""
        self.can_carry_on, self.last = False, ""
        self.turn_began = now
        self.rate = 0.0
        self._do(Activity.WAITING, "")

    def stopping(self) -> None:
        """Show that the user asked the running turn to stop."""
        if self.busy:
            self._do(Activity.STOPPING, "")

    def apply(self, event: Event, now: float) -> None:
        """Apply one event of a turn."""
        self.is_streaming = True
        try:
            self._apply(event, now)
            self.changed()
        finally:
            self.is_streaming = False

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case TurnStarted(message):
                self._end_welcome()
                self._add_said(message)
            case Steered(message):
                self._add_said(message)
            case PromptPlanned():
                pass
            case RequestStarted(model, _, _):
                self._request(model)
            case RetryWaiting():
                self._retry(event, now)
            case Noticed(text, warning):
                self.notice(text, warning=warning)
            case TurnEnded():
                self._end(event)
            case TaskEvent():
                self._apply_task(event)
            case PermissionAsked() | PermissionAnswered() | ToolStarted() | ToolProgress() | ToolEnded():
                self._apply_tool(event)
            case ReasoningAdded() | TextAdded() | CallForming() | ReplyEnded():
                self._apply_reply(event, now)

    def _add_said(self, message: Message) -> None:
        for item in user_items(message):
            self._add(item)

    def _apply_reply(self, event: ReasoningAdded | TextAdded | CallForming | ReplyEnded, now: float) -> None:
        match event:
            case ReasoningAdded(reply_id, text):
                self._grow(reasoning_id(reply_id), Kind.REASONING, text, now)
                self._do(Activity.THINKING, "")
            case TextAdded(reply_id, text):
                self._settle(reasoning_id(reply_id))
                self._grow(reply_id, Kind.ASSISTANT, text, now)
                self._do(Activity.ANSWERING, "")
            case CallForming(_, name, characters):
                self._do(Activity.CALLING, f"{name} ({characters:,} characters)")
            case ReplyEnded(message, usage, seconds):
                self._seal(message)
                if usage.output_tokens and seconds >= _MIN_SECONDS:
                    self.rate = usage.output_tokens / seconds

    def _apply_tool(
        self, event: PermissionAsked | PermissionAnswered | ToolStarted | ToolProgress | ToolEnded
    ) -> None:
        match event:
            case PermissionAsked(request):
                self._mark(request.call, Status.FORMING, Status.ASKING)
            case PermissionAnswered(call):
                self._mark(call, Status.ASKING, Status.FORMING)
            case ToolStarted(call):
                self._mark(call, Status.FORMING, Status.LIVE)
            case ToolProgress(call, newest, _):
                index = self._call_index(call, Status.LIVE)
                self.items.put(index, replace(self.items.at(index), result=newest))
                return
            case ToolEnded(call, message, seconds):
                self._tool_ended(call, message, seconds)
        self._do_calls()

    def _apply_task(self, event: TaskEvent) -> None:
        """Apply an event of a running task to the item of its call."""
        if event.session_id not in self._tasks:
            taken = {index for index, _ in self._tasks.values()}
            index = self._call_index(event.call, Status.LIVE, taken)
            self._tasks[event.session_id] = index, TaskView(event.session_id)
        index, view = self._tasks[event.session_id]
        view.apply(event.event)
        self.items.put(index, view.shown_in(self.items.at(index)))
        self._do_calls()

    def fail(self, line: str, now: float, *, sent: bool = True) -> None:
        """End a turn that failed unexpectedly or never began; `line` tells the user why."""
        self.notice(line, warning=True)
        self._close(f"failed after {duration(now - self.turn_began)}" if sent else "nothing was sent")

    def mark_still_streaming(self) -> None:
        """Show the last reply as still streaming, because another process is writing it."""
        for at in reversed(self.items.ordinals):
            item = self.items.at(at)
            if item.kind is Kind.NOTICE:
                continue
            if (item.kind, item.status) == (Kind.ASSISTANT, Status.CANCELLED):
                self.items.put(at, replace(item, status=Status.LIVE))
                self.changed()
            return

    def status(self, now: float) -> str:
        """Return the text of the status line: the activity, its duration and its speed."""
        if now < self.quit_until:
            return "ctrl+c again quits"
        if self.said:
            return self.said
        if self.doing:
            return f"{self.doing} · esc cancels"
        if self.can_carry_on:
            return f"{self.last} · enter on an empty prompt continues"
        parts = [self.last]
        if self.busy:
            took = f"{max(0.0, now - self.turn_began):.0f} s"
            doing = activity_words(self.activity, self.subject, self._retry_at - now)
            parts = [doing, took, self.tokens_per_second(now)]
        if self.is_summarizing:
            parts.append("summarizing older messages")
        return " · ".join(filter(None, parts)) or "ready"

    def tokens_per_second(self, now: float) -> str:
        """Return the reply's speed, estimated from its characters (`~`); empty if unknown."""
        if self.activity in (Activity.ANSWERING, Activity.THINKING):
            passed = now - self.reply_began
            if self.reply_chars and passed >= _MIN_SECONDS:
                return f"~{self.reply_chars / ABOUT_CHARS_PER_TOKEN / passed:.0f} tokens/s"
        return ""

    def _do(self, activity: Activity, subject: str) -> None:
        self.activity, self.subject = activity, subject
        self.changed()

    def _request(self, model: str) -> None:
        self._reply_items.clear()
        self._open_calls.clear()
        self._tasks.clear()
        self.reply_chars = 0
        self._do(Activity.WAITING, model)

    def _retry(self, event: RetryWaiting, now: float) -> None:
        self._retry_at = now + event.delay
        self._do(Activity.RETRYING, event.reason.rstrip("."))

    def _grow(self, item_id: str, kind: Kind, text: str, now: float) -> None:
        if not self.reply_chars:
            self.reply_began = now
        self.reply_chars += len(text)
        index = self._reply_items.get(item_id)
        if index is None:
            self._reply_items[item_id] = self._add(Item(item_id, kind, text, Status.LIVE))
        else:
            self.items.grow(index, text)

    def _settle(self, item_id: str) -> None:
        index = self._reply_items.get(item_id)
        if index is not None and self.items.at(index).status is Status.LIVE:
            self.items.put(index, replace(self.items.at(index), status=Status.DONE))

    def _seal(self, message: Message) -> None:
        """Replace the streamed items with those of the stored reply."""
        self._settle(reasoning_id(message.id))
        items = reply_items(message)
        if message.writes_calls and all(item.id != message.id for item in items):
            self._drop(message.id)
        for item in items:
            index = self._reply_items.get(item.id)
            if index is None:
                index = self._add(item)
            else:
                self.items.put(index, item)
            if item.kind is Kind.TOOL:
                self._open_calls.append(index)
        self._settle(message.id)
        self._do(Activity.WAITING, "")

    def _drop(self, item_id: str) -> None:
        """Remove a streamed item that turned out to be only tool calls written as text."""
        index = self._reply_items.pop(item_id, None)
        if index is not None:
            below = [self.items.at(at) for at in range(index + 1, self.items.ordinals.stop)]
            self.items.cut(index)
            for item in below:
                self.items.append(item)

    def _mark(self, call: ToolCall, before: Status, status: Status) -> None:
        index = self._call_index(call, before)
        self.items.put(index, replace(self.items.at(index), status=status))

    def _tool_ended(self, call: ToolCall, message: Message, seconds: float) -> None:
        index = self._call_index(call)
        self.items.put(index, answered(self.items.at(index), message, seconds))
        self._open_calls.remove(index)

    def _do_calls(self) -> None:
        """Show the state of the open calls: one asks for approval, some run, or all wait."""
        items = [self.items.at(index) for index in self._open_calls]
        asking = next((item for item in items if item.status is Status.ASKING), None)
        running = [item for item in items if item.status is Status.LIVE]
        if asking is not None:
            self._do(Activity.PERMISSION, f"for {asking.text.partition(' ')[0]}")
        elif running:
            others = f" and {len(running) - 1} more" if len(running) > 1 else ""
            self._do(Activity.TOOL, one_line(running[0].text, _MAX_DOING) + others)
        else:
            self._do(Activity.WAITING, "")

    def _call_index(self, call: ToolCall, status: Status | None = None, taken: Collection[int] = ()) -> int:
        """Return the index of a call's item: an open one with the same text, or a new one.

        Models repeat ids, so calls are matched by their text. Of several equal ones that are not `taken`,
        the first with the given status is used: calls run in parallel.
        """
        text = describe_call(call)
        open_calls = (index for index in self._open_calls if index not in taken)
        same = [index for index in open_calls if self.items.at(index).text == text]
        if same:
            return next((index for index in same if self.items.at(index).status is status), same[0])
        index = self._add(Item(call_id(call.id, len(self.items)), Kind.TOOL, text, Status.LIVE))
        self._open_calls.append(index)
        return index

    def _end(self, event: TurnEnded) -> None:
        self._cancel_open_calls()
        self.can_carry_on = self.can_carry_on or event.outcome in (Outcome.CUT, Outcome.BROKEN)
        if event.error:
            self.notice(event.error, warning=True)
        self._close(ending_words(event, self.rate))

    def _cancel_open_calls(self) -> None:
        for index in self._open_calls:
            self.items.put(index, replace(self.items.at(index), status=Status.CANCELLED, live=""))

    def _close(self, last: str) -> None:
        for item_id in tuple(self._reply_items):
            self._settle(item_id)
        self._reply_items.clear()
        self._open_calls.clear()
        self._tasks.clear()
        self.last = last
        self.activity, self.subject = Activity.IDLE, ""
        self.changed()

    def _add(self, item: Item) -> int:
        """Add an item and return its index."""
        ordinal = self.items.append(item)
        self.changed()
        return ordinal
