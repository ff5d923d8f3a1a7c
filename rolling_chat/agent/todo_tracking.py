"""The to-do list of a branch: what its newest call says, and nothing once that is done and over."""

from __future__ import annotations

from collections.abc import Iterable

from rolling_chat.agent.conversation import Conversation
from rolling_chat.messages import Message
from rolling_chat.todo_list import TodoList, list_of


class TodoTracker:
    """Finds the list in the part of a conversation that was read, looking at new messages only."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen = 0
        self._last: Message | None = None
        self._version = -1
        self._list: TodoList | None = None

    @property
    def current(self) -> TodoList | None:
        """The list as it is now; None where there is none, and where a new turn followed its end."""
        messages = self._conversation.recent
        if (self._version, self._seen) != (self._conversation.version, len(messages)):
            seen = self._seen
            grew = len(messages) >= seen > 0 and messages[seen - 1] is self._last
            self._list = _after(self._list, messages[seen:]) if grew else _after(None, messages)
            self._version, self._seen = self._conversation.version, len(messages)
            self._last = messages[-1] if messages else None
        return self._list


def _after(todo: TodoList | None, messages: Iterable[Message]) -> TodoList | None:
    for message in messages:
        if message.role == "user" and todo is not None and todo.is_done:
            todo = None
        elif message.tool_calls:
            todo = list_of(message) or todo
    return todo if todo is None or todo.items else None
