"""Recognize a conversation by the messages that it begins with.

The fingerprint of a prefix is made of that of the prefix before and of one message more. So a request that
goes on with a conversation has all of its prefixes, a fork has those up to the fork, and an edited message
changes every prefix from there on. The system text is left out: clients write the date into it, and no
decision is about it.
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
    """Hold the messages of a request and the fingerprint of every prefix: `prefixes[n]` is that of the first
    `n` messages."""

    messages: tuple[Message, ...]
    prefixes: tuple[str, ...]

    def ends(self) -> list[int]:
        """Return the lengths at which a request may have ended, the longest first.

        None ends with an answer, or among the results of one.
        """
        roles = [message.role for message in self.messages]
        before = (
            length
            for length in range(len(roles) - 1, 0, -1)
            if roles[length - 1] in {"user", "tool"} and roles[length] != "tool"
        )
        return [len(roles), *before] if roles else []


class Recognizer:
    """Turn conversations into branches; equal messages are one object, so that they are counted once.

    At most `limit` characters of messages are held, the least recently used leave first. Safe for threads.
    """

    def __init__(self, limit: int = 64_000_000) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[bytes, Message] = OrderedDict()
        self._lock = threading.Lock()

    def branch(self, conversation: Iterable[JsonObject], seed: str = "") -> Branch:
        """Return the branch of a conversation in OpenAI's format, the system message first.

        `seed` is whatever else tells conversations apart.
        """
        prefix = hashlib.sha256(seed.encode()).digest()
        prefixes = [prefix.hex()[:32]]
        messages: list[Message] = []
        for said in conversation:
            digest = _digest(said)
            is_system = not messages and normalize_role(said) == "system"
            messages.append(self._message(digest, said))
            prefix = hashlib.sha256(prefix + (b"system" if is_system else digest)).digest()
            prefixes.append(prefix.hex()[:32])
        return Branch(tuple(messages), tuple(prefixes))

    def _message(self, digest: bytes, said: JsonObject) -> Message:
        with self._lock:
            known = self._known.get(digest)
            if known is not None:
                self._known.move_to_end(digest)
                return known
        message = Message.from_dict(said)
        with self._lock:
            if digest in self._known:  # another thread was faster
                return self._known[digest]
            self._known[digest] = message
            self._size += size_of(message)
            while self._size > self._limit and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                self._size -= size_of(gone)
        return message


def size_of(message: Message) -> int:
    """Return about what a message takes in memory, in characters."""
    arguments = sum(len(call.arguments) for call in message.tool_calls)
    return count_characters(message) + arguments + _OVERHEAD


def _digest(message: JsonObject) -> bytes:
    text = json.dumps(message, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).digest()


def seed_of(*parts: str) -> str:
    """Return what tells conversations apart besides their messages, as one text."""
    return json.dumps(parts)
