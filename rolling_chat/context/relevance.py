"""Rate how relevant a message is to the current conversation: by the names it shares with it, and by its age.

Names are paths, identifiers and numbers, not words of prose. A name counts more if fewer messages contain it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.messages import Message

_ALNUM = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + bytes(range(128, 256))
_IN_NAMES = b"_-./$@"
_BETWEEN = bytes(code for code in range(128) if code not in _ALNUM and code not in _IN_NAMES)
_SPACED = bytes.maketrans(_BETWEEN, b" " * len(_BETWEEN))
_NAME = re.compile(rb"[_/@\d]|\w\.\w|[a-z][A-Z]")
_MIN_NAME = 3  # bytes
# In JSON arguments, a newline is two characters; the second would become part of a word.
_ESCAPED = re.compile(r"\\[nrt]")

ANSWERS = 4
"""How many of the model's newest messages define the current topic, together with the newest request."""

_RECENT = 500  # tokens; messages nearer than this are equally new
# The worth of a token without any name in common with the newest messages.
_UNRELATED = 0.02


class Relevance:
    """Rates items by the names they share with the newest messages, per token, and by their age."""

    def __init__(self, items: Sequence[PromptItem]) -> None:
        """Read `items`, everything that a prompt may contain, in order; each is read once."""
        wanted = {name for item in _newest(items) for name in words_in(item.normalized.message)}
        wanted = {name for name in wanted if len(name) >= _MIN_NAME and _NAME.search(name)}
        found = {item.index: wanted & words_in(item.normalized.message) for item in items}
        message_counts = Counter(name for names in found.values() for name in names)
        weights = {name: math.log((len(items) + 1) / count) for name, count in message_counts.items()}
        # sorted, because the sum of floats depends on their order and sets have none
        self._weights = {
            index: math.fsum(weights[name] for name in sorted(names)) for index, names in found.items()
        }
        self._shared = {index: len(names) for index, names in found.items()}
        self._ages: dict[int, int] = {}
        age = 0
        for item in reversed(items):
            age += item.bound
            self._ages[item.index] = age

    def reason(self, item: PromptItem) -> str:
        """Return why an item is removed before others, for the report."""
        count = self._shared.get(item.index, 0)
        names = f"{count} name{'s' * (count > 1)}" if count else "no name"
        return f"an older result; it shares {names} with the newest messages"

    def worth(self, items: Sequence[PromptItem], base: float = _UNRELATED) -> float:
        """Return the worth of a token of `items`: more for each shared name, less with age.

        `base` is the worth of a new token without any name.
        """
        cost = sum(item.bound for item in items)
        weight = sum(self._weights.get(item.index, 0.0) for item in items)
        return self.aged_worth(items, weight / max(1, cost) + base)

    def aged_worth(self, items: Sequence[PromptItem], worth: float) -> float:
        """Return the worth of a token of `items`, given the `worth` that it would have if it were new."""
        age = min((self._ages.get(item.index, 0) for item in items), default=0)
        return worth / (age + _RECENT)


def words_in(message: Message) -> set[bytes]:
    """Return the words of a message and of its call arguments; a path or a dotted name is one word."""
    arguments = (_ESCAPED.sub(" ", call.arguments) for call in message.tool_calls)
    text = "\n".join((message.text, *arguments)).encode("utf-8", "surrogatepass")
    return {word.strip(b".-/") for word in text.translate(_SPACED).split()}


def _newest(items: Sequence[PromptItem]) -> Iterable[PromptItem]:
    """Yield the newest request and the model's newest messages."""
    yield from [item for item in reversed(items) if item.message.role == "user"][:1]
    yield from [item for item in reversed(items) if item.message.role == "assistant"][:ANSWERS]
