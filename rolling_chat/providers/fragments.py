"""What one event of a streamed answer adds to the reply, whatever wire it came by."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.messages import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class CallFragment:
    """A piece of a tool call: id and name come once, the arguments in pieces of JSON text.

    `index` is the server's; `signature` is Gemini's, to be sent back with the call.
    """

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a reply. `thinking` are blocks in Anthropic's form; only signed ones can be sent back.

    `has_ended`: the server said that the reply is over, why in `finish_reason`. `usage` has what the server
    reported with this piece; a figure that it did not report is 0.
    """

    text: str = ""
    reasoning: str = ""
    thinking: tuple[JsonObject, ...] = ()
    calls: tuple[CallFragment, ...] = ()
    text_signatures: tuple[str, ...] = ()
    finish_reason: str = ""
    has_ended: bool = False
    usage: Usage | None = None
