"""Convert the events of a turn to updates for the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp.helpers import plan_entry, text_block, update_plan
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    PlanEntryStatus,
    ToolCallProgress,
    UsageUpdate,
    UserMessageChunk,
)

from rolling_chat.acp import tool_calls
from rolling_chat.acp.content import notice
from rolling_chat.context import PromptReport
from rolling_chat.message_words import reasoning_text
from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.text import visible
from rolling_chat.todo_list import TodoList, TodoState

_STATES: dict[TodoState, PlanEntryStatus] = {
    TodoState.PENDING: "pending",
    TodoState.DOING: "in_progress",
    TodoState.DONE: "completed",
}


def answer_chunk(text: str, message_id: str) -> AgentMessageChunk:
    """Return the update with more of an answer."""
    return AgentMessageChunk(
        session_update="agent_message_chunk", content=text_block(text), message_id=message_id
    )


def thought_chunk(text: str, message_id: str) -> AgentThoughtChunk:
    """Return the update with more of a model's reasoning."""
    return AgentThoughtChunk(
        session_update="agent_thought_chunk", content=text_block(text), message_id=message_id
    )


def user_chunk(text: str, message_id: str) -> UserMessageChunk:
    """Return the update with a user's message."""
    return UserMessageChunk(
        session_update="user_message_chunk", content=text_block(text), message_id=message_id
    )


def notice_chunk(text: str) -> AgentMessageChunk:
    """Return the update with a line of the program."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(notice(text)))


def plan_of(todo: TodoList | None) -> AgentPlanUpdate:
    """Return the model's to-do list as a plan; an empty one if there is none."""
    items = todo.items if todo is not None else ()
    return update_plan([plan_entry(visible(item.text), status=_STATES[item.state]) for item in items])


def usage_of(report: PromptReport, usage: Usage) -> UsageUpdate:
    """Return the gauge's figures: the size of the next request, the window, and the cost if it is known."""
    cost = Cost(amount=usage.cost, currency="USD") if usage.cost is not None else None
    return UsageUpdate(session_update="usage_update", used=report.used, size=report.window, cost=cost)


@dataclass(slots=True)
class OpenCall:
    """An unanswered call of the newest reply, and the client's id for it."""

    call: ToolCall
    id: str


class OpenCalls:
    """The calls that were announced to the client and have no result yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: list[OpenCall] = []

    def begin(self, message: Message) -> list[Any]:
        """Return the updates that announce the calls of a reply."""
        found = [
            OpenCall(call, tool_calls.call_id(message.id, at)) for at, call in enumerate(message.tool_calls)
        ]
        self._open = found
        return [tool_calls.started(one.call, one.id, self._folder) for one in found]

    def id_of(self, call: ToolCall) -> str:
        """Return the id of a call; equal calls are matched in their order."""
        same = [one.id for one in self._open if one.call is call]
        equal = [one.id for one in self._open if one.call == call]
        return (same or equal or [call.id])[0]

    def end(self, call: ToolCall, message: Message) -> ToolCallProgress:
        """Return the update with the result of a call."""
        known = self.id_of(call)
        self._open = [one for one in self._open if one.id != known]
        return tool_calls.ended(known, message, self._folder)


def replayed(messages: Sequence[Message], folder: Path) -> list[Any]:
    """Return the updates that show a stored conversation."""
    updates: list[Any] = []
    calls = OpenCalls(folder)
    open_calls: list[ToolCall] = []
    for message in messages:
        match message.role:
            case "user":
                updates.append(user_chunk(visible(message.words, tabs=True), message.id))
            case "assistant":
                if thought := reasoning_text(message):
                    updates.append(thought_chunk(visible(thought, tabs=True), f"{message.id}-thought"))
                if message.prose.strip():
                    updates.append(answer_chunk(visible(message.prose, tabs=True), message.id))
                updates += calls.begin(message)
                open_calls = list(message.tool_calls)
            case "tool" if open_calls:
                updates.append(calls.end(open_calls.pop(0), message))
            case _:
                pass
    return updates
