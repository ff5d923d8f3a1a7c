"""Cold start with a model that nobody knows and nobody counts: what is refused, here and there, and how much
of the window is used.

Six tokenizers under names that say nothing, at three windows. Three sessions begin with a model that has
never answered: with a message that fills 90 % of W - R by the server's count, with one that fills half of it
and grows by turns of a fiftieth until it is refused here, and with one that is a third longer than the window
(rolling off). `usable` is the largest request of the second session by the server's count, from its second
request on.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.events import Outcome, TurnEnded
from rolling_chat.providers.protocol import Request
from tests.benchmarks.cold_start_counted import (
    ELSEWHERE,
    WINDOWS,
    CountingProvider,
    reserve_of,
    runtime_for,
    text_for,
)
from tests.support.agent import collect
from tests.support.tokenizers import Tokenizer, six_tokenizers

_FULL, _HALF, _STEP, _TOO_LONG = 0.9, 0.5, 0.02, 1.33
_MOST_TURNS = 40


class SilentProvider(CountingProvider):
    """A server that counts nothing that it is not to answer."""

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """Say nothing."""
        return 0


@dataclass
class ColdStart:
    """What became of one tokenizer at one window.

    `turned_away` is first messages that fit by the server's count and were refused here, `refused` the most
    requests that the server refused in one session; `usable` a share of W - R.
    """

    turned_away: int = 0
    refused: int = 0
    usable: float = 0.0

    def line(self) -> str:
        """The figures for people."""
        return (
            f"{self.turned_away} that fit refused here, {self.refused} refused there at most, "
            f"{100 * self.usable:.1f} % of W - R usable from the second request"
        )


def run() -> Iterator[str]:
    """A line for every window and tokenizer."""
    for window in WINDOWS:
        for tokenizer in six_tokenizers():
            figures = asyncio.run(start_cold(tokenizer, window))
            yield f"{tokenizer.model:<17} at {window:>7,}: {figures.line()}"


async def start_cold(tokenizer: Tokenizer, window: int, *, seed: int = 3) -> ColdStart:
    """The three sessions with one model, each of them the first one ever."""
    rng, figures = random.Random(seed), ColdStart()
    for first in (_FULL, _HALF, _TOO_LONG):
        provider = SilentProvider(tokenizer, window)
        with tempfile.TemporaryDirectory() as folder:
            runtime = runtime_for(Path(folder), provider, ELSEWHERE)
            chat = Chat.open(runtime, rolling=False)
            try:
                is_sent = await _say(chat, provider, first, rng)
                figures.turned_away += first < 1 and not is_sent
                if first == _HALF:
                    figures.usable = await _grow(chat, provider, rng)
            finally:
                runtime.store.close()
        figures.refused = max(figures.refused, provider.refused)
    return figures


async def _grow(chat: Chat, provider: SilentProvider, rng: random.Random) -> float:
    """Go on by small turns until one is refused; return the largest share of W - R that was used."""
    room, largest = provider.window - reserve_of(chat), 0.0
    for turn in range(1, _MOST_TURNS):
        if not await _say(chat, provider, _HALF + turn * _STEP, rng):
            break
        largest = max(largest, provider.tokens(provider.requests[-1]) / room)
    return largest


async def _say(chat: Chat, provider: SilentProvider, share: float, rng: random.Random) -> bool:
    """Send a message that makes the request so large; return whether it was answered."""
    target = int(share * (provider.window - reserve_of(chat) if share < 1 else provider.window))
    events = await collect(chat.send(text_for(chat, provider, target, rng)))
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    return ended.outcome is Outcome.DONE
