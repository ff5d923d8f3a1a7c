"""Recognize a conversation by its first messages.

The fingerprint of a prefix is computed from that of the shorter prefix and one more message. A request that
continues a conversation therefore has all of its prefixes, a fork has those up to the fork, and an edited
message changes all later ones. The system text is ignored: clients insert the date into it, and no decision
depends on it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from rolling_chat.message_validation import normalize_role
from rolling_chat.messages import JsonObject, Message, count_characters

_OVERHEAD = 500  # characters that a message costs beyond its text


@dataclass(frozen=True, slots=True)
class Branch:
    """The messages of a request, and the fingerprint of every prefix.

    `prefixes[n]` is the fingerprint of the first `n` messages."""

    messages: tuple[Message, ...]
    prefixes: tuple[str, ...]

    def ends(self) -> list[int]:
        """Return the lengths at which an earlier request may have ended, longest first.

        No request ends with an answer, or between the results of one answer.
        """
        roles = [message.role for message in self.messages]
        before = (
            length
            for length in range(len(roles) - 1, 0, -1)
            if roles[length - 1] in {"user", "tool"} and roles[length] != "tool"
        )
        return [len(roles), *before] if roles else []


class Recognizer:
    """Converts conversations to branches; equal messages become one object, which is counted only once.

    At most `limit` characters of messages are kept; the least recently used are evicted first. Thread-safe.
    """

    def __init__(self, limit: int = 64_000_000) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[bytes, Message] = OrderedDict()
        self._lock = threading.Lock()

    def branch(self, conversation: Iterable[JsonObject], seed: str = "") -> Branch:
        """Return the branch of a conversation in OpenAI's format, the system message first.

        `seed` contains everything else that distinguishes conversations.
        """
        prefix = hashlib.sha256(seed.encode()).digest()
        prefixes = [prefix.hex()[:32]]
        messages: list[Message] = []
        for message in conversation:
            digest = _digest(message)
            is_system = not messages and normalize_role(message) == "system"
            messages.append(self._message(digest, message))
            prefix = hashlib.sha256(prefix + (b"system" if is_system else digest)).digest()
            prefixes.append(prefix.hex()[:32])
        return Branch(tuple(messages), tuple(prefixes))

    def _message(self, digest: bytes, data: JsonObject) -> Message:
        with self._lock:
            known = self._known.get(digest)
            if known is not None:
                self._known.move_to_end(digest)
                return known
        message = Message.from_dict(data)
        with self._lock:
            if digest in self._known:  # another thread was faster
                return self._known[digest]
            self._known[digest] = message
            self._size += size_of(message)
            while self._size > self._limit and len(self._known) > 1:
                _, evicted = self._known.popitem(last=False)
                self._size -= size_of(evicted)
        return message


def size_of(message: Message) -> int:
    """Return the approximate memory of a message, in characters."""
    arguments = sum(len(call.arguments) for call in message.tool_calls)
    return count_characters(message) + arguments + _OVERHEAD


def _digest(message: JsonObject) -> bytes:
    text = json.dumps(message, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).digest()


def seed_of(*parts: str) -> str:
    """Return one text from the values that distinguish conversations besides their messages."""
    return json.dumps(parts)
