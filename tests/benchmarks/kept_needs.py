"""What the next message of a model uses of what it had seen: names, hard names, and lines word for word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rolling_chat.context import count_tokens
from rolling_chat.messages import Message

MODEL = "gpt-4o"
# paths, dotted names, and names that are no word of prose: snake_case, camelCase
_NAMES = re.compile(
    r"(?:[\w.-]*/)+[\w.-]{2,}|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+"
)
_WORDS = re.compile(r"\w+")
_MIN_LINE = 20  # characters: shorter lines, such as `return None`, are written anew
_MIN_WORDS = 2
_FRAMING = 4  # tokens of a message beside its text


@dataclass(frozen=True, slots=True)
class Conversation:
    """Hold messages with what each of them says, and its size in tokens."""

    messages: Sequence[Message]
    texts: Sequence[str]
    sizes: Sequence[int]

    @classmethod
    def of(cls, given: Sequence[dict[str, Any]]) -> Conversation:
        """Read messages in OpenAI's format."""
        messages = [Message.from_dict(message) for message in given]
        return cls(messages, [said_by(message) for message in messages], [_size(one) for one in messages])

    def always_sent(self, end: int) -> list[int]:
        """Return the indexes below `end` of the system message, the request, and the newest iteration."""
        before = self.messages[:end]
        request = max((at for at, message in enumerate(before) if message.role == "user"), default=0)
        calls = max((at for at, message in enumerate(before) if message.tool_calls), default=-1)
        newest = range(calls, end) if calls > request else range(end - 1, end)
        system = [0] if before[0].role == "system" else []
        return sorted({*system, request, *newest})


@dataclass(frozen=True, slots=True)
class Needs:
    """Hold what one message uses that stood anywhere before it.

    `hard` are the names that stand neither in the system prompt nor in the request nor in the newest
    iteration, which every prompt has.
    """

    names: frozenset[str]
    hard: frozenset[str]
    lines: frozenset[str]

    @classmethod
    def of(cls, conversation: Conversation, index: int) -> Needs:
        """Return what the message at `index` uses of those before it."""
        said = conversation.texts[index]
        before = "\n".join(conversation.texts[:index])
        always = "\n".join(conversation.texts[at] for at in conversation.always_sent(index))
        names = frozenset(name for name in names_in(said) if name in before)
        hard = frozenset(name for name in names if name not in always)
        return cls(names, hard, frozenset(line for line in repeatable_lines(said) if line in before))


COLUMNS = ("names", "hard", "lines")


def said_by(message: Message) -> str:
    """Return the text of a message, and what its calls hold, as it was written and as it is read."""
    values = (text for call in message.tool_calls for text in _texts(_read(call.arguments)))
    return "\n".join((message.text, *(call.arguments for call in message.tool_calls), *values))


def _size(message: Message) -> int:
    said = "\n".join((message.text, *(f"{call.name} {call.arguments}" for call in message.tool_calls)))
    return count_tokens(said, MODEL) + _FRAMING


def names_in(text: str) -> list[str]:
    """Return paths, dotted names and identifiers, as often as they stand in a text."""
    return _NAMES.findall(text)


def repeatable_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that are long enough to be known again, without what is around them."""
    for line in map(str.strip, text.splitlines()):
        if len(line) >= _MIN_LINE and len(_WORDS.findall(line)) >= _MIN_WORDS:
            yield line


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from _texts(inner)
        case dict():
            for inner in value.values():
                yield from _texts(inner)
