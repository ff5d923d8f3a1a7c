"""The view of a running task in its transcript line: figures, current activity, conversation."""

from __future__ import annotations

from dataclasses import replace

from rolling_chat.call_lines import describe_call
from rolling_chat.events import (
    CallForming,
    Event,
    PermissionAnswered,
    PermissionAsked,
    PromptPlanned,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    TextAdded,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from rolling_chat.messages import ToolCall
from rolling_chat.task_record import TaskConversation, TaskRecord
from rolling_chat.text import one_line
from rolling_chat.tui.state.items import Item, Status

_MAX_DOING = 300  # characters


class TaskView:
    """A fold over the events of one running task."""

    def __init__(self, session: str) -> None:
        self._record = TaskRecord(session, "")
        self._said = TaskConversation()
        self._tail = ""  # the reply that streams in
        self._running: list[ToolCall] = []
        self._doing = "begins"
        self._is_asking = False

    def apply(self, event: Event) -> None:
        """Apply one event of the task."""
        match event:
            case TurnStarted(message):
                self._said.add(message)
            case PromptPlanned(report):
                self._record = replace(self._record, tokens=report.token_count, window=report.window)
            case RequestStarted(model):
                self._record = replace(self._record, model=model, requests=self._record.requests + 1)
                self._doing = f"waiting for {model}"
            case RetryWaiting(reason=reason):
                self._doing = f"waiting to try again: {reason}"
            case ReasoningAdded():
                self._doing = "thinking"
            case TextAdded(text=text):
                self._tail += text
                self._doing = "answering"
            case CallForming(name=name):
                self._doing = f"writing a call of {name}"
            case ReplyEnded():
                self._reply_ended(event)
            case _:
                self._apply_tool(event)

    def _reply_ended(self, event: ReplyEnded) -> None:
        cost, more = self._record.cost, event.usage.cost
        if more is not None:
            self._record = replace(self._record, cost=(cost or 0.0) + more)
        self._said.add(event.message)
        self._tail = ""

    def _apply_tool(self, event: Event) -> None:
        match event:
            case PermissionAsked(request):
                self._is_asking = True
                self._doing = f"asks about {one_line(describe_call(request.call), _MAX_DOING)}"
            case PermissionAnswered():
                self._is_asking = False
            case ToolStarted(call):
                self._running.append(call)
                self._do_running()
            case ToolProgress(call, newest):
                self._doing = f"{describe_call(call)}\n{newest}"
            case ToolEnded(call, message):
                self._said.add(message)
                self._is_asking = False
                if call in self._running:
                    self._running.remove(call)
                self._do_running()
            case _:
                pass

    def _do_running(self) -> None:
        if self._running:
            more = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
            self._doing = one_line(describe_call(self._running[0]), _MAX_DOING) + more

    def shown_in(self, item: Item) -> Item:
        """Return the call's item, updated to the task's current state."""
        said = "\n".join(part for part in (self._said.text, self._tail) if part)
        status = Status.ASKING if self._is_asking else Status.LIVE
        return replace(item, status=status, task=self._record, result=said, live=self._doing)
