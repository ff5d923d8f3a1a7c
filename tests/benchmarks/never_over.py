"""Never over, never idle: long conversations of mixed text with models whose count nobody knows yet.

Six simulated tokenizers, each with a window of 4,096 and one of 32,768 tokens. Every request is planned,
counted by the tokenizer as its provider would, and reported back; a request above the window is refused
with both numbers, which is an observation too, and planned again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import (
    ContextConfig,
    ContextPlan,
    CountMemo,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from tests.support.mixed_text import mixed_text, mixed_turn
from tests.support.tokenizers import Tokenizer, six_tokenizers

REQUESTS = 10_000
WINDOWS = (4_096, 32_768)
RESERVE = 512
_CONVERSATION = 200
_REPLIES = 3
_SYSTEM = {"role": "system", "content": "You are a careful assistant. " * 10}


@dataclass
class Told:
    """What a model saw of us.

    `above_bound` are requests that the model counted higher than u, and `above_room` those of them that
    used the safety margin. As shares of W - R: `filled` is what the prompt at a trim would have been
    without it, 1 at most, and `sent` the last prompt before.
    """

    requests: int = 0
    refused: int = 0
    above_bound: int = 0
    above_room: int = 0
    filled: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)

    def line(self) -> str:
        """The figures for people."""
        return (
            f"{self.refused} of {self.requests} refused, {self.above_bound} above u, {self.above_room} into "
            f"the margin; at {len(self.filled)} trims {_mean(self.filled)} of W - R, "
            f"the last prompt before {_mean(self.sent)}"
        )


def run() -> Iterator[str]:
    """A line for every tokenizer and window."""
    tokenizers = six_tokenizers()
    each = REQUESTS // (len(tokenizers) * len(WINDOWS))
    yield f"{each * len(tokenizers) * len(WINDOWS):,} requests, {RESERVE} reserved"
    for window in WINDOWS:
        for tokenizer in tokenizers:
            told = converse(tokenizer, window, each, seed=5)
            yield f"{tokenizer.model:<17} at {window:>6,}: {told.line()}"


def converse(tokenizer: Tokenizer, window: int, requests: int, *, seed: int) -> Told:
    """`requests` requests in conversations of two hundred, the measurements handed on between them."""
    rng, told, learned = random.Random(seed), Told(), Measurements()
    while told.requests < requests:
        conversation = _Conversation(tokenizer, window, told, learned)
        conversation.run(rng, requests)
        learned = conversation.learned
    return told


class _Conversation:
    """One session with a model; `learned` is what is known of how it counts."""

    def __init__(self, tokenizer: Tokenizer, window: int, told: Told, learned: Measurements) -> None:
        self._tokenizer = tokenizer
        self._window = window
        self._told = told
        self.learned = learned
        self._messages: list[dict[str, Any]] = [_SYSTEM]
        self._plan: ContextPlan | None = None
        self._memo = CountMemo()
        self._sent = 0

    def run(self, rng: random.Random, most: int) -> None:
        """Two hundred requests, or until `most` were told of."""
        number = 0
        while self._told.requests < most and number < _CONVERSATION:
            for message in mixed_turn(rng, number, largest=self._window // 4):
                self._messages.append(message)
                if message["role"] != "assistant" and self._told.requests < most:
                    self._ask()
                    number += 1
            answer = mixed_text(rng, rng.randint(5, self._window // 16))
            self._messages.append({"role": "assistant", "content": answer})

    def _ask(self) -> None:
        told, room = self._told, self._window - RESERVE
        planned_before = self._plan
        prompt = self._send()
        reported = self._tokenizer.report(prompt.messages)
        if prompt.report.trimmed and planned_before is not None and told.requests > _REPLIES:
            added = self._tokenizer.report(self._messages[planned_before.seen :])
            told.filled.append(min(1.0, (self._sent + added) / room))
            told.sent.append(self._sent / room)
        self._sent = reported

    def _send(self) -> FinalPrompt:
        """Send until it fits; every attempt is told of."""
        while True:
            prompt = build_final_prompt(
                self._messages, self._config(), model=self._tokenizer.model, plan=self._plan, memo=self._memo
            )
            reported = self._tokenizer.report(prompt.messages)
            self._plan, group = confirm_count(prompt.plan, reported, memo=self._memo)
            self.learned = self.learned.add(group)
            told, over = self._told, reported + RESERVE - self._window
            told.requests += 1
            told.above_bound += reported > prompt.report.bound
            told.above_room += over > -prompt.report.margin
            if over <= 0:
                return prompt
            told.refused += 1

    def _config(self) -> ContextConfig:
        return ContextConfig(
            max_context_tokens=self._window,
            reserved_output_tokens=RESERVE,
            max_history_tokens=0,
            max_tool_result_tokens=self._window // 4,
            safety_margin=0.02 if self.learned.replies >= _REPLIES else 0.10,
            prompt_cache=True,
            calibration=self.learned.calibration,
        )


def _mean(shares: list[float]) -> str:
    return f"{100 * sum(shares) / len(shares):.1f} %" if shares else "(none)"
