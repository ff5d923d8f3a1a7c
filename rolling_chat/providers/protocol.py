"""Define the interface of providers: a prompt in, typed deltas out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Json, Message, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One planned request: `messages` and `tools` are sent as they are.

    `messages` have been converted by `wire.for_model`. `max_tokens` is sent unless it is None. `window` is W
    in tokens (Ollama's `num_ctx`). For cache marks, `previous_length` is the number of messages in the
    previous request, 0 if there was none, and `stable_system_chars` is the length of the part of the system
    text that does not change. With `text_tools`, the tools are described in the system prompt, and calls and
    results are sent as text. `effort` is how much the model may reason, empty for its default; `cache_ttl` is
    the time to live that cache marks request. `patience` limits the seconds during which a temporary failure
    is retried; None uses the settings.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Json], ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    max_tokens: int | None = None
    window: int = 0
    session_id: str = ""
    api_base: str | None = None
    previous_length: int = 0
    stable_system_chars: int = 0
    effort: str = ""
    cache_ttl: CacheTtl = "5m"
    text_tools: bool = False
    patience: float | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text, as it streams in."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, as it streams in."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call; fragments with the same `index` belong together."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """A temporary failure: the request is sent again after `delay` seconds.

    `left` is the number of seconds during which retries continue.
    """

    attempt: int
    left: float
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a stream: the whole message, its usage, and whether it was cut off."""

    message: Message
    usage: Usage


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Retrying | Finished


class ErrorKind(StrEnum):
    """The kinds of failed requests that the user must handle differently."""

    BAD_KEY = "bad_key"
    MODEL_UNKNOWN = "model_unknown"
    NO_NETWORK = "no_network"
    THROTTLED = "throttled"
    OVERLOADED = "overloaded"
    TOO_LONG = "too_long"
    BAD_REQUEST = "bad_request"
    INTERRUPTED = "interrupted"  # the connection broke after text had arrived
    UNKNOWN = "unknown"


BROKEN_OFF = "The answer broke off in the middle; what came is kept."
"""The line for an INTERRUPTED request."""


class ProviderError(Exception):
    """A failed request: `str()` is one line for the user, `detail` is for the log.

    For TOO_LONG, `limit`, `requested` and its part `prompt` are the provider's numbers in tokens, if any.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        detail: str = "",
        limit: int | None = None,
        requested: int | None = None,
        prompt: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.detail = detail
        self.limit = limit
        self.requested = requested
        self.prompt = prompt
        self.retry_after = retry_after


class Provider(Protocol):
    """A way to send prompts to models and to stream their answers."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Send `request`; yield deltas, and finally `Finished`.

        Raises ProviderError. Closing the iterator, or cancelling the task that reads it, closes the
        connection.
        """
        ...

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        """Return the messages of `request` exactly as they are sent, for counting and hashing."""
        ...

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """Return the provider's own count of the tokens of `request`; 0 if it gives none in time."""
        ...

    async def warm_up(self, model: str, api_base: str | None) -> None:
        """Import, in a thread, what the first request to `model` at `api_base` needs."""
        ...

    async def close(self) -> None:
        """Close the connections kept for later requests; a later request opens new ones."""
        ...
