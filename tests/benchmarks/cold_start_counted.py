"""Cold start with a model that nobody here knows, whose provider counts requests without answering them.

Six tokenizers under names that say nothing, at three windows. A session begins with a message that fills
half of W - R by the provider's count, and goes on with one that fills it to 90 %; another begins with one
that fills 90 % at once; and one with a message that is a tenth longer than the window. The server is nearby
and counts whatever is much, or elsewhere and is only asked where our bound decides.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from rolling_chat.agent import Chat, Runtime
from rolling_chat.context.config import ContextConfig
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request
from rolling_chat.settings.schema import AgentSettings, ModelSettings, Settings
from tests.support.agent import FEW_TOOLS, MODEL, ScriptedProvider, collect, make_runtime, of_kind, says
from tests.support.mixed_text import mixed_text
from tests.support.tokenizers import Tokenizer, six_tokenizers

WINDOWS = (8_192, 32_768, 131_072)
NEARBY, ELSEWHERE = "http://127.0.0.1:9/v1", "https://models.example/v1"
_HALF, _FULL = 0.5, 0.9  # of W - R
_TOO_LONG = 1.1  # of W
_ENOUGH = 0.005  # of the window: how near a message comes to what it is to fill


class CountingProvider(ScriptedProvider):
    """A provider with a tokenizer and a window, which counts requests and refuses what is too long."""

    def __init__(self, tokenizer: Tokenizer, window: int) -> None:
        super().__init__(says("So it is."))
        self.tokenizer = tokenizer
        self.window = window
        self.refused = 0

    def tokens(self, request: Request) -> int:
        """The tokens of a request, as the provider counts them."""
        return self.tokenizer.report(self.wire_form(request), request.tools)

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """The same, without an answer."""
        self.counted.append(request)
        return self.tokens(request)

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        """Refuse, or answer with the true usage."""
        tokens = self.tokens(request)
        if tokens >= self.window:
            self.refused += 1
            raise ProviderError(ErrorKind.TOO_LONG, "too long", limit=self.window, requested=tokens)
        async for delta in super().stream(request):
            yield replace(delta, usage=Usage(tokens, 5)) if isinstance(delta, Finished) else delta


@dataclass
class Figures:
    """What became of the messages of one tokenizer at one window.

    `turned_away` fit by the provider's count and were refused here; `passed` were longer than the window, and
    sent. `refused` is by the provider. `worst` is the largest error of a planned size, as a share of the
    provider's count; `asked` how many counts there were, for `requests`.
    """

    turned_away: int = 0
    passed: int = 0
    refused: int = 0
    worst: float = 0.0
    asked: int = 0
    requests: int = 0

    def __add__(self, other: Figures) -> Figures:
        """The figures of both."""
        return Figures(
            self.turned_away + other.turned_away, self.passed + other.passed, self.refused + other.refused,
            max(self.worst, other.worst), self.asked + other.asked, self.requests + other.requests,
        )  # fmt: skip

    def line(self) -> str:
        """The figures for people."""
        return (
            f"{self.turned_away} that fit refused here, {self.passed} too long sent, {self.refused} refused "
            f"there; sizes off by {100 * self.worst:.1f} % at most; {self.asked} counts for {self.requests} "
            "requests"
        )


def run() -> Iterator[str]:
    """A line for every window and every place of the server, over the six tokenizers."""
    for window in WINDOWS:
        for address in (NEARBY, ELSEWHERE):
            total = Figures()
            for tokenizer in six_tokenizers():
                total += asyncio.run(start_cold(tokenizer, window, address))
            place = "nearby" if address == NEARBY else "elsewhere"
            yield f"six tokenizers at {window:>7,}, {place:<9}: {total.line()}"


async def start_cold(tokenizer: Tokenizer, window: int, address: str, *, seed: int = 3) -> Figures:
    """The three sessions with one model, each of them the first one ever."""
    rng, figures = random.Random(seed), Figures()
    for shares in ((_HALF, _FULL), (_FULL,), (_TOO_LONG,)):
        with tempfile.TemporaryDirectory() as folder:
            provider = CountingProvider(tokenizer, window)
            figures += await _converse(runtime_for(Path(folder), provider, address), shares, rng)
    return figures


async def _converse(runtime: Runtime, shares: tuple[float, ...], rng: random.Random) -> Figures:
    provider, figures = runtime.provider, Figures()
    assert isinstance(provider, CountingProvider)
    window = provider.window
    chat = Chat.open(runtime, rolling=False)
    try:
        await chat.session.count_beginning()
        for share in shares:
            target = int(share * (window - reserve_of(chat) if share < 1 else window))
            text = text_for(chat, provider, target, rng)
            events = await collect(chat.send(text))
            ended = events[-1]
            assert isinstance(ended, TurnEnded)
            is_sent = ended.outcome is Outcome.DONE
            figures.turned_away += share < 1 and not is_sent
            figures.passed += share > 1 and is_sent
            if is_sent:
                true = provider.tokens(provider.requests[-1])
                planned = of_kind(events, PromptPlanned)[-1].report.token_count
                figures.worst = max(figures.worst, abs(planned - true) / true)
            figures.requests += 1
    finally:
        runtime.store.close()
    figures.refused, figures.asked = provider.refused, len(provider.counted)
    return figures


def runtime_for(folder: Path, provider: CountingProvider, address: str) -> Runtime:
    agent = AgentSettings(tools=FEW_TOOLS)
    runtime = make_runtime(folder, provider, settings=Settings(agent=agent))
    model = ModelSettings(api_base=address, max_input_tokens=provider.window)
    runtime.settings = replace(runtime.settings, models=MappingProxyType({MODEL: model}))
    return runtime


def reserve_of(chat: Chat) -> int:
    config: ContextConfig = chat.session.setup.config
    return min(config.reserved_output_tokens, config.max_context_tokens // 3)


def text_for(chat: Chat, provider: CountingProvider, target: int, rng: random.Random) -> str:
    """A message that makes the next request `target` tokens long by the provider's count, or hardly fewer."""

    def tokens(text: str) -> int:
        branch = [*chat.session.messages, Message("user", text)]
        planned = chat.session.planner.plan_untrimmed(branch, "auto", lambda _: True)
        assert planned is not None
        return provider.tokens(planned.request)

    text = "Look at this."
    missing = target - tokens(text)
    while missing > _ENOUGH * provider.window:
        piece = mixed_text(rng, missing)
        while provider.tokenizer.count(piece) > missing:
            piece = piece[: int(len(piece) * 0.8)]
        text += piece
        missing = target - tokens(text)
        assert missing > -_ENOUGH * provider.window
    return text
