"""Tasks that the model gives to a second agent: what is kept of one with its result, and its conversation.

A task has a session of its own, which keeps its messages. The result that the model gets is its answer; the
figures of the task and its conversation in short stand beside it, for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from rolling_chat.call_lines import describe_call
from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Ending, JsonObject, Message, ToolCall
from rolling_chat.text import one_line

TASK = "task"
"""The name of the tool, and among a result's extras of what is kept of the task."""

FAILED = "The task failed: "
"""What the result of a task that failed begins with."""

_MAX_NAME = 40  # characters of the prompt by which a task is named
_MAX_CALL = 300  # characters of a call in the conversation
_WORDS = {
    Ending.FAILED: "failed",
    Ending.REFUSED: "refused",
    Ending.CANCELLED: "cancelled",
    Ending.LENGTH: "cut at the output limit",
}


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The figures of a task: the session that keeps it, its model, and what it has used so far.

    `tokens` are those of its newest prompt, of a window of so many; `cost` is in US dollars, None where it is
    unknown.
    """

    session: str
    model: str
    requests: int = 0
    tokens: int = 0
    window: int = 0
    cost: float | None = None

    def as_json(self) -> JsonObject:
        """Return the record as the extras of a message keep it."""
        return asdict(self)


def record_in(message: Message) -> TaskRecord | None:
    """Return the record beside the result of a task; None where there is none, or not one of ours."""
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
    """Return a short name for a task: how its prompt begins."""
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
    """The conversation of a task in short, as text that grows: what was asked, called and answered."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._calls: list[str] = []  # of the newest reply, that have no result yet

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
        """All of it, with the calls that have no result yet."""
        return "\n".join([*self._lines, *self._calls])


def conversation_text(messages: Iterable[Message]) -> str:
    """Return a task's conversation in short."""
    conversation = TaskConversation()
    for message in messages:
        conversation.add(message)
    return conversation.text


def _ended(text: str, ending: Ending) -> str:
    word = _WORDS.get(ending, "")
    return f"{text} · {word}" if word else text
