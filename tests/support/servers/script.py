"""What a scripted server is told to do with a request, and what it keeps of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web


@dataclass(frozen=True)
class Call:
    """A tool call of a reply; `arguments` is JSON text, streamed in fragments."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """A reply, streamed. `usage` False keeps the usage back; `finish_reason` empty says what fits."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish_reason: str = ""
    usage: bool = True
    pause: float = 0.0  # seconds between two pieces
    words: int = 1  # in a piece of the text

    def pieces(self) -> list[str]:
        """The text, word by word or a few at a time."""
        words = re.findall(r"\S+\s*|\s+", self.text)
        return ["".join(words[at : at + self.words]) for at in range(0, len(words), self.words)]


@dataclass(frozen=True)
class Fail:
    """An error answer; `body` is text, or what becomes JSON."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Break:
    """The reply begins, and the connection is torn after `pieces` pieces of its text.

    With `in_order` the answer ends there as if it were whole, without the marks of its end.
    """

    reply: Reply
    pieces: int = 1
    in_order: bool = False


@dataclass(frozen=True)
class Hang:
    """The reply sends its first piece and never goes on; the server notices when the client goes away."""

    reply: Reply = Reply("wait")


@dataclass(frozen=True)
class Drop:
    """The connection is closed without an answer."""


@dataclass(frozen=True)
class Raw:
    """An answer that a function of the test writes, byte by byte.

    `write` gets the request, the reply's events as they would go over the wire, and the reply in one object.
    """

    reply: Reply
    write: Callable[[web.Request, list[str], dict[str, Any]], Awaitable[web.StreamResponse]]


Step: TypeAlias = Reply | Fail | Break | Hang | Drop | Raw
Script: TypeAlias = Callable[[dict[str, Any]], Step]


@dataclass(frozen=True)
class Recorded:
    """One request as it came: its JSON body, its headers, what the server counted, how it was answered."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    tokens: int
    refused: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the body."""
        return list(self.body.get("messages") or [])
