"""A reply put together from the fragments of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.messages import Ending, Json, MadeBy, Message, ToolCall
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.wire import REASONING, SIGNATURES, THINKING_BLOCKS

# litellm hides Gemini's signature behind this in a call's id, for clients that lose other fields
_SIGNATURE_IN_ID = "__thought__"
MAX_CHARACTERS = 1_500_000
"""Of one reply: text, thinking and the arguments of its calls. No model's output limit reaches this far."""

MAX_CALLS = 256
"""Of one reply."""

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
    """Builds a message from litellm's stream chunks, yielding the deltas on the way."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thinking: list[Json] = []
        self._calls: dict[int, _Call] = {}
        self._places: dict[int, int] = {}  # a fragment's index -> the place of the call it belongs to now
        self._text_signatures: list[str] = []
        self._finish_reason = ""
        self._characters = 0

    def add(self, chunk: Any) -> Iterator[Delta]:
        """Add one stream chunk and yield its deltas; a chunk of usage alone has none.

        Raises ProviderError for a reply that is longer than any can be.
        """
        for choice in getattr(chunk, "choices", None) or ():
            reason = getattr(choice, "finish_reason", None)
            if reason:
                self._finish_reason = str(reason)
            delta = getattr(choice, "delta", None)
            if delta is not None:
                yield from map(self._counted, self._add_delta(delta))

    def _counted(self, delta: Delta) -> Delta:
        match delta:
            case TextDelta(text) | ReasoningDelta(text):
                self._characters += len(text)
            case ToolCallDelta(_, _, name, arguments):
                self._characters += len(name) + len(arguments)
        self._check_size()
        return delta

    def _check_size(self) -> None:
        if self._characters > MAX_CHARACTERS or len(self._calls) > MAX_CALLS:
            raise ProviderError(ErrorKind.UNKNOWN, _ENDLESS)

    @property
    def size(self) -> int:
        """The size of the reply received so far, in characters."""
        return self._characters

    @property
    def has_come(self) -> bool:
        """Whether any part of a reply was received."""
        return bool(self._text or self._reasoning or self._calls)

    def message(self, made_by: MadeBy, ending: Ending | None = None) -> Message:
        """Build the message received so far; with `ending` None the finish reason decides how it ended."""
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

    def _add_delta(self, delta: Any) -> Iterator[Delta]:
        reasoning = getattr(delta, "reasoning_content", None)
        if isinstance(reasoning, str) and reasoning:
            self._reasoning.append(reasoning)
            yield ReasoningDelta(reasoning)
        for block in getattr(delta, "thinking_blocks", None) or ():
            self._add_thinking(_as_dict(block))
        self._add_text_signatures(getattr(delta, "provider_specific_fields", None))
        text = getattr(delta, "content", None)
        if isinstance(text, str) and text:
            self._text.append(text)
            yield TextDelta(text)
        for fragment in getattr(delta, "tool_calls", None) or ():
            yield self._add_call(fragment)

    def _add_thinking(self, block: dict[str, Json]) -> None:
        """Blocks come in pieces without a signature, then whole with one; only the whole are of use."""
        if block.get("type") == "redacted_thinking":
            data = str(block.get("data") or "")
            self._characters += len(data)
            self._check_size()
            self._thinking.append({"type": "redacted_thinking", "data": data})
            return
        signature = str(block.get("signature") or "")
        if not signature:
            return
        text = str(block.get("thinking") or "")
        self._characters += len(signature)  # the text came in pieces before
        self._check_size()
        self._thinking.append({"type": "thinking", "thinking": text, "signature": signature})

    def _add_text_signatures(self, fields: Any) -> None:
        signatures = fields.get("thought_signatures") if isinstance(fields, dict) else None
        for signature in signatures or ():
            if isinstance(signature, str) and signature not in self._text_signatures:
                self._text_signatures.append(signature)

    def _add_call(self, fragment: Any) -> ToolCallDelta:
        """Fragments with one index are one call; id and name come with the first of them only."""
        index = getattr(fragment, "index", None)
        whole_id = str(getattr(fragment, "id", None) or "")
        function = getattr(fragment, "function", None)
        name = str(getattr(function, "name", None) or "")
        arguments = str(getattr(function, "arguments", None) or "")
        call_id, _separator, signature = whole_id.partition(_SIGNATURE_IN_ID)
        place = self._place(index if isinstance(index, int) else 0, call_id, name)
        call = self._calls.setdefault(place, _Call())
        call.id = call.id or call_id
        call.name = call.name or name
        call.signature = call.signature or signature or _signature_of(fragment) or _signature_of(function)
        call.arguments.append(arguments)
        return ToolCallDelta(place, call.id, call.name, arguments)

    def _place(self, index: int, call_id: str, name: str) -> int:
        """Some servers give every parallel call the index 0: a new id with a name begins a new call."""
        known = self._calls.get(self._places.get(index, -1))
        begins = known is None or bool(name and call_id and known.id not in {"", call_id})
        if begins:
            self._places[index] = index if index not in self._calls else max(self._calls) + 1
        return self._places[index]

    def _extras(self) -> dict[str, Json]:
        extras: dict[str, Json] = {}
        if self._reasoning:
            extras[REASONING] = "".join(self._reasoning)
        if self._thinking:
            extras[THINKING_BLOCKS] = list(self._thinking)
        calls = [call for _index, call in sorted(self._calls.items()) if call.name]
        signed = {
            str(place): {"thought_signature": call.signature}
            for place, call in enumerate(calls)
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


def _signature_of(holder: Any) -> str:
    fields = getattr(holder, "provider_specific_fields", None)
    return str(fields.get("thought_signature") or "") if isinstance(fields, dict) else ""


def _as_dict(value: Any) -> dict[str, Json]:
    if isinstance(value, dict):
        return dict(value)
    return dict(value.model_dump(exclude_none=True)) if hasattr(value, "model_dump") else {}
