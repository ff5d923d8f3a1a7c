"""The to-do list of a branch, from its newest call; none once it is done and a new turn has begun."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rolling_chat.agent.conversation import Conversation
from rolling_chat.messages import Message
from rolling_chat.todo_list import TodoList, list_of


class TodoTracker:
    """Finds the list in the part of a conversation that was read, checking only new messages."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen = 0
        self._last: Message | None = None
        self._version = -1
        self._list: TodoList | None = None
        self._has_call = self._has_request = False  # in the messages seen: a call with a list, a user message

    @property
    def current(self) -> TodoList | None:
        """The current list; None if there is none, or if a new turn began after it was done."""
        messages = self._conversation.recent
        if (self._version, self._seen) != (self._conversation.version, len(messages)):
            self._update(messages)
            self._version, self._seen = self._conversation.version, len(messages)
            self._last = messages[-1] if messages else None
        return self._list

    def _update(self, messages: Sequence[Message]) -> None:
        """Find the list; only in new messages if those that were seen are still the same."""
        seen, new = self._seen, messages
        if len(messages) >= seen > 0 and messages[seen - 1] is self._last:
            new = messages[seen:]
            self._list = _after(self._list, new)
        elif len(messages) > seen > 0 and messages[-1] is self._last:
            new = messages[:-seen]
            if not self._has_call:
                above = _after(None, new)
                is_over = above is not None and above.is_done and self._has_request
                self._list = None if is_over else above
        else:
            self._has_call = self._has_request = False
            self._list = _after(None, messages)
        self._has_call = self._has_call or any(list_of(one) is not None for one in new if one.tool_calls)
        self._has_request = self._has_request or any(one.role == "user" for one in new)


def _after(todo: TodoList | None, messages: Iterable[Message]) -> TodoList | None:
    for message in messages:
        if message.role == "user" and todo is not None and todo.is_done:
            todo = None
        elif message.tool_calls:
            todo = list_of(message) or todo
    return todo if todo is None or todo.items else None
