"""Tasks that the model gives to a second agent: the record stored with the result, and the conversation.

A task has a session of its own with its messages. The model gets the answer as the result; people also see
the task's figures and its abridged conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from rolling_chat.call_lines import describe_call
from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Ending, JsonObject, Message, ToolCall
from rolling_chat.text import one_line

TASK = "task"
"""The name of the tool, and the key of the task's record in a result's extras."""

FAILED = "The task failed: "
"""The beginning of a failed task's result."""

_MAX_NAME = 40  # characters of the prompt that become a task's name
_MAX_CALL = 300  # characters of a call in the conversation
_WORDS = {
    Ending.FAILED: "failed",
    Ending.REFUSED: "refused",
    Ending.CANCELLED: "cancelled",
    Ending.LENGTH: "cut at the output limit",
}


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The figures of a task: its session, its model, and its usage so far.

    `tokens` is the size of its newest prompt, `window` that of its context window; `cost` is in US dollars,
    None if unknown.
    """

    session: str
    model: str
    requests: int = 0
    tokens: int = 0
    window: int = 0
    cost: float | None = None

    def as_json(self) -> JsonObject:
        """Return the record as stored in a message's extras."""
        return asdict(self)


def record_in(message: Message) -> TaskRecord | None:
    """Return the record of a task from its result; None if there is none, or it has another form."""
    found = (message.extras or {}).get(TASK) if message.role == "tool" else None
    match found:
        case {
            "session": str(session), "model": str(model),
            "requests": int(requests), "tokens": int(tokens), "window": int(window),
            "cost": float() | int() | None as cost,
        }:  # fmt: skip
            return TaskRecord(session, model, requests, tokens, window, cost)
        case _:
            return None


def name_of(prompt: str) -> str:
    """Return a short name for a task: the beginning of its prompt."""
    return one_line(prompt.strip(), _MAX_NAME)


def name_in(call: ToolCall) -> str:
    """Return the short name of the task that a call begins; empty if it cannot be read."""
    try:
        arguments = read_json(call.arguments or "{}")
    except ValueError:
        return ""
    prompt = arguments.get("prompt") if isinstance(arguments, Mapping) else None
    return name_of(prompt) if isinstance(prompt, str) else ""


class TaskConversation:
    """The abridged conversation of a task, as growing text: messages, calls and answers."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._calls: list[str] = []  # calls of the newest reply that have no result yet

    def add(self, message: Message) -> None:
        """Add the next message."""
        match message.role:
            case "user":
                self._lines.append(f"❯ {message.words}")
            case "assistant":
                if prose := message.prose.strip():
                    self._lines.append(_ended(prose, message.ending))
                calls = (one_line(describe_call(call), _MAX_CALL) for call in message.tool_calls)
                self._calls = [f"⚙ {call}" for call in calls]
            case "tool":
                call = self._calls.pop(0) if self._calls else f"⚙ {message.name or 'tool'}"
                self._lines.append(_ended(call, message.ending))
            case _:
                pass

    @property
    def text(self) -> str:
        """The whole text, including calls that have no result yet."""
        return "\n".join([*self._lines, *self._calls])


def conversation_text(messages: Iterable[Message]) -> str:
    """Return a task's abridged conversation."""
    conversation = TaskConversation()
    for message in messages:
        conversation.add(message)
    return conversation.text


def _ended(text: str, ending: Ending) -> str:
    word = _WORDS.get(ending, "")
    return f"{text} · {word}" if word else text
