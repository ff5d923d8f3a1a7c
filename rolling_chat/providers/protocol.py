"""What a provider is to the rest of the program: a prompt in, typed deltas out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Json, Message, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One request, already planned: `messages` and `tools` are sent as they stand.

    `messages` have gone through `wire.for_model`; `max_tokens` is sent only where it is not
    None; `window` is W in tokens (Ollama's `num_ctx`); `previous_length` is the number of
    messages of the request before this one, 0 where there was none (for cache marks);
    `stable_system_chars` is the length of the part of the system text that stands still.
    With `text_tools` the tools are described in the system prompt, and calls and results are sent as text.
    `effort` is how much the model may reason, empty for its own default; `cache_ttl` the time to live that
    cache marks ask for. `patience` is for how many seconds a
    temporary failure is tried again at most, None for as long as the settings say.
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
    """The request failed in a way that passes; it is sent again after `delay` seconds.

    `left` is for how many seconds it is still tried.
    """

    attempt: int
    left: float
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a stream: the whole message, what it used, and whether it was cut."""

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
    INTERRUPTED = "interrupted"  # the connection broke after text had come
    UNKNOWN = "unknown"


BROKEN_OFF = "The answer broke off in the middle; what came is kept."
"""The line of an INTERRUPTED request."""


class ProviderError(Exception):
    """A request that failed: `str()` is one line for the user, `detail` is for the log.

    For TOO_LONG, `limit`, `requested` and its part `prompt` are the provider's numbers in tokens, if named.
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
        """Send `request`; yield deltas, at last `Finished`.

        Raises ProviderError. Closing the iterator, or cancelling the task that reads it,
        closes the connection.
        """
        ...

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        """Return the messages of `request` exactly as they are sent, for counting and hashing."""
        ...

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """Return the tokens of `request` by the provider's own count; 0 where it says none in time."""
        ...

    async def warm_up(self, model: str, api_base: str | None) -> None:
        """Import what the first request to `model` at `api_base` needs, in a thread."""
        ...

    async def close(self) -> None:
        """Close the connections that are kept for the next request; a later one opens new ones."""
        ...
