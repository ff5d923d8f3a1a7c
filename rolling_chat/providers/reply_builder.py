"""Assemble a reply from the fragments of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rolling_chat.messages import Ending, Json, JsonObject, MadeBy, Message, ToolCall
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.wire import REASONING, SIGNATURES, THINKING_BLOCKS

MAX_CHARACTERS = 1_500_000
"""The longest reply: text, reasoning and arguments. No model's output limit is higher."""

MAX_CALLS = 256
"""The most tool calls in one reply."""

_CUT_REASONS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})


_ENDLESS = (
    f"The reply was stopped: it is longer than {MAX_CHARACTERS:,} characters, "
    f"or has more than {MAX_CALLS} tool calls."
)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""


class ReplyBuilder:
    """Builds a message from fragments and yields the deltas."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thinking: list[Json] = []
        self._unsigned = 0  # characters of reasoning that are not yet in a complete block
        self._calls: dict[int, _Call] = {}
        self._positions: dict[int, int] = {}  # the current call's position for each index in fragments
        self._text_signatures: list[str] = []
        self._finish_reason = ""
        self._characters = 0
        self._has_ended = False

    def add(self, fragment: Fragment) -> Iterator[Delta]:
        """Add one fragment and yield its deltas; a fragment with only usage has none.

        Raises ProviderError for a reply longer than any model's limit.
        """
        self._finish_reason = fragment.finish_reason or self._finish_reason
        self._has_ended = self._has_ended or fragment.has_ended
        if fragment.reasoning:
            self._reasoning.append(fragment.reasoning)
            self._unsigned += len(fragment.reasoning)
            self._grow(len(fragment.reasoning))
            yield ReasoningDelta(fragment.reasoning)
        for block in fragment.thinking:
            self._add_thinking(block)
        self._text_signatures += [
            signature for signature in fragment.text_signatures if signature not in self._text_signatures
        ]
        if fragment.text:
            self._text.append(fragment.text)
            self._grow(len(fragment.text))
            yield TextDelta(fragment.text)
        for piece in fragment.calls:
            yield self._add_call(piece)

    @property
    def size(self) -> int:
        """The size of the reply received so far, in characters."""
        return self._characters

    @property
    def has_come(self) -> bool:
        """Whether any part of a reply was received."""
        return bool(self._text or self._reasoning or self._calls)

    @property
    def has_ended(self) -> bool:
        """Whether the server said that the reply is over."""
        return self._has_ended

    def message(self, made_by: MadeBy, ending: Ending | None = None) -> Message:
        """Build the message received so far; without `ending`, the finish reason decides how it ended."""
        cut = Ending.LENGTH if self._finish_reason in _CUT_REASONS else Ending.COMPLETE
        return Message(
            role="assistant",
            content="".join(self._text),
            tool_calls=tuple(
                ToolCall(call.id, call.name, "".join(call.arguments))
                for _index, call in sorted(self._calls.items())
                if call.name
            ),
            extras=self._extras() or None,
            made_by=made_by,
            ending=ending or cut,
        )

    def _grow(self, characters: int) -> None:
        self._characters += characters
        if self._characters > MAX_CHARACTERS or len(self._calls) > MAX_CALLS:
            raise ProviderError(ErrorKind.UNKNOWN, _ENDLESS)

    def _add_thinking(self, block: JsonObject) -> None:
        """Add a complete thinking block; earlier pieces without a signature are ignored."""
        if block.get("type") == "redacted_thinking":
            data = str(block.get("data") or "")
            self._grow(len(data))
            self._thinking.append({"type": "redacted_thinking", "data": data})
            return
        signature = str(block.get("signature") or "")
        if not signature:
            return
        text = str(block.get("thinking") or "")
        streamed = min(len(text), self._unsigned)
        self._unsigned -= streamed
        self._grow(len(signature) + len(text) - streamed)
        self._thinking.append({"type": "thinking", "thinking": text, "signature": signature})

    def _add_call(self, piece: CallFragment) -> ToolCallDelta:
        """Add a fragment to its call; only the first fragment has the id and the name."""
        position = self._position(piece)
        call = self._calls.setdefault(position, _Call())
        call.id = call.id or piece.id
        call.name = call.name or piece.name
        call.signature = call.signature or piece.signature
        call.arguments.append(piece.arguments)
        self._grow(len(call.name) + len(piece.arguments))
        return ToolCallDelta(position, call.id, call.name, piece.arguments)

    def _position(self, piece: CallFragment) -> int:
        """Return a call's position. A new id with a name is a new call: some servers number all calls 0."""
        index, position = piece.index, self._positions.get(piece.index)
        known = None if position is None else self._calls[position].id
        if position is None or (piece.name and piece.id and known not in {"", piece.id}):
            position = self._positions[index] = index if index not in self._calls else max(self._calls) + 1
        return position

    def _extras(self) -> dict[str, Json]:
        extras: dict[str, Json] = {}
        if self._reasoning:
            extras[REASONING] = "".join(self._reasoning)
        if self._thinking:
            extras[THINKING_BLOCKS] = list(self._thinking)
        calls = [call for _index, call in sorted(self._calls.items()) if call.name]
        signed = {
            str(position): {"thought_signature": call.signature}
            for position, call in enumerate(calls)
            if call.signature
        }
        on_calls = {call.signature for call in calls}
        texts = [
            {"thought_signature": signature}
            for signature in self._text_signatures
            if signature not in on_calls
        ]
        if signed or texts:
            extras[SIGNATURES] = {"calls": signed, "texts": texts}
        return extras
