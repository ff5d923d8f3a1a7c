"""Define what one event of a streamed answer adds to the reply, for all API formats."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.messages import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class CallFragment:
    """A piece of a tool call: id and name arrive once, the arguments in pieces of JSON text.

    `index` is the server's; `signature` is Gemini's, and is sent back with the call.
    """

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a reply.

    `thinking` contains blocks in Anthropic's format; only signed ones can be sent back. `has_ended` means
    that the server marked the reply as complete, for the reason in `finish_reason`. `usage` is what the
    server reported with this piece; figures that it did not report are 0.
    """

    text: str = ""
    reasoning: str = ""
    thinking: tuple[JsonObject, ...] = ()
    calls: tuple[CallFragment, ...] = ()
    text_signatures: tuple[str, ...] = ()
    finish_reason: str = ""
    has_ended: bool = False
    usage: Usage | None = None
