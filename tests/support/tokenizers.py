"""Six ways to count, as models that nobody has seen: what calibration has to learn from replies alone.

Two are OpenAI's own encodings. The others stand for what is met elsewhere: a token a byte; Claude 2's
kind, which splits long words, names and numbers; a token a character, which is mild on prose and hard
on nothing; and one whose template puts forty tokens around every message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rolling_chat.context.encodings import count_encoded, find_encoding

_PIECES = re.compile(r"[a-z]{1,4}|[A-Z][a-z]{0,3}|[A-Z]|[0-9]|\s+|[^\w\s]|\w", re.ASCII)


@dataclass(frozen=True)
class Tokenizer:
    """A model by its name, and what its provider reports of a request."""

    model: str
    count: Callable[[str], int]
    framing: int

    def report(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> int:
        """The prompt tokens of a request."""
        total = 3 + (self.count(json.dumps(tools)) if tools else 0)
        for message in messages:
            total += self.framing + self.count(message.get("content") or "")
            for call in message.get("tool_calls") or ():
                function = call["function"]
                total += 8 + self.count(function["name"] + function["arguments"])
        return total


def six_tokenizers() -> list[Tokenizer]:
    """The six, the easy ones first."""
    return [
        Tokenizer("gpt-4o", _encoding("o200k_base"), 4),
        Tokenizer("gpt-4", _encoding("cl100k_base"), 4),
        Tokenizer("claude-2", _split_words, 8),
        Tokenizer("local/characters", len, 5),
        Tokenizer("local/bytes", lambda text: len(text.encode()), 12),
        Tokenizer("local/framed", _encoding("cl100k_base"), 40),
    ]


def _encoding(name: str) -> Callable[[str], int]:
    def count(text: str) -> int:
        encoding = find_encoding(name)
        assert encoding is not None, f"{name} comes with litellm"
        return count_encoded(encoding, text)

    return count


def _split_words(text: str) -> int:
    ascii_part = text.encode("ascii", "ignore").decode()
    beyond = len(text) - len(ascii_part)
    # a space joins the word behind it
    pieces = sum(1 for piece in _PIECES.finditer(ascii_part) if piece.group() != " ")
    return pieces + 2 * beyond
