"""The agent as a model behind the real program: it gets the wire form of a request, and reports its usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rolling_chat.messages import Ending, Json, Message, ToolCall, Usage
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request, TextDelta
from rolling_chat.providers.wire import to_wire
from tests.benchmarks.long_run.agent import Agent, Answer, Call, Prompt, call_id
from tests.support.tokenizers import Tokenizer, six_tokenizers

_FRAMING = 6
_REMEMBERED = 4_000  # texts whose tokens are known: more than a prompt has


def make_tokenizer() -> Tokenizer:
    """Return how this model counts, which the program has to find out: nobody knows the model."""
    encoded = next(one.count for one in six_tokenizers() if one.model == "gpt-4")
    return Tokenizer("openai/long-run", lru_cache(maxsize=_REMEMBERED)(encoded), _FRAMING)


@dataclass(slots=True)
class Counts:
    """What became of requests; `over` are those that the model would have refused as too long."""

    requests: int = 0
    over: int = 0
    recalls: int = 0
    trims: int = 0
    fullest: float = 0.0  # share of the window

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.requests + other.requests, self.over + other.over, self.recalls + other.recalls,
            self.trims + other.trims, max(self.fullest, other.fullest),
        )  # fmt: skip


@dataclass
class RuleProvider:
    """A provider after the protocol; `counts` are those since somebody last took them."""

    agent: Agent
    window: int
    tokenizer: Tokenizer = field(default_factory=make_tokenizer)
    counts: Counts = field(default_factory=Counts)

    def take_counts(self) -> Counts:
        """Return what became of the requests since the last time."""
        counts, self.counts = self.counts, Counts()
        return counts

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        """Answer by the rule. Raises ProviderError for a request that is too long."""
        await asyncio.sleep(0)
        sent = self.wire_form(request)
        tokens = self.tokenizer.report(sent, request.tools)
        self.counts.requests += 1
        self.counts.fullest = max(self.counts.fullest, tokens / self.window)
        if tokens > self.window:
            self.counts.over += 1
            raise ProviderError(
                ErrorKind.TOO_LONG, "the prompt is too long", limit=self.window, requested=tokens
            )
        message = self._message(request, sent)
        said = message.text + "".join(call.arguments for call in message.tool_calls)
        if message.text:
            yield TextDelta(message.text)
        yield Finished(message, Usage(tokens, self.tokenizer.count(said)))

    def _message(self, request: Request, sent: Sequence[dict[str, Json]]) -> Message:
        names = frozenset(str(tool["function"]["name"]) for tool in request.tools)
        prompt = Prompt(sent, names)
        match self.agent.act(prompt):
            case Answer(text):
                return Message("assistant", text)
            case Call() if request.tool_choice == "none":
                return Message("assistant", "I do not know that: I found it nowhere.")
            case Call() as call:
                self.counts.recalls += call.name == "recall"
                made = ToolCall(call_id(prompt, call, 0), call.name, call.text)
                return Message("assistant", "", tool_calls=(made,), ending=Ending.COMPLETE)

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        """Return the messages as they are sent."""
        return to_wire(request, marks=False)

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """Count nothing: the model is known by its replies alone."""
        return 0

    async def warm_up(self, model: str, api_base: str | None) -> None:
        """Nothing is needed."""

    async def close(self) -> None:
        """Nothing is open."""
