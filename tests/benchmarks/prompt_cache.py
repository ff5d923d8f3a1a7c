"""A growing session under Anthropic's cache rules: a byte prefix, four marks, twenty blocks back."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import ContextConfig, ContextPlan, build_final_prompt, count_tokens
from tests.benchmarks.workloads import SYSTEM, iteration, sentence

MODEL = "claude-sonnet-4-5"
CALLS = 199
_LOOK_BACK = 20


@dataclass
class CacheServer:
    """Counts what it reads from its cache and what it must read anew, in tokens."""

    written: set[str] = field(default_factory=set)

    def request(self, messages: list[dict[str, Any]], marks: set[int]) -> tuple[int, int]:
        """Tokens read from the cache and tokens not, for one request with cache marks at `marks`."""
        blocks = [json.dumps(message, sort_keys=True) for message in messages]
        prefixes, so_far = [], ""
        for block in blocks:
            so_far += block
            prefixes.append(so_far)
        hit = -1
        for mark in sorted(marks, reverse=True):
            found = next(
                (at for at in range(mark, max(-1, mark - _LOOK_BACK), -1) if prefixes[at] in self.written), -1
            )
            hit = max(hit, found)
        self.written.update(prefixes[mark] for mark in marks)
        sizes = [count_tokens(block, MODEL) for block in blocks]
        return sum(sizes[: hit + 1]), sum(sizes[hit + 1 :])


def run() -> Iterator[str]:
    """Uncached tokens against new ones, and how full the prompt was, for three ways to trim."""
    yield f"{CALLS} growing calls, {MODEL}, window 128,000"
    for name, keys in (
        ("trim to 0.6 and hold", {}),
        ("trim to 0.8 and hold", {"trim_to": 0.8}),
        ("fill exactly", {"trim_to": 1.0}),
    ):
        yield _line(name, keys)


def _line(name: str, keys: dict[str, Any]) -> str:
    config = ContextConfig(max_context_tokens=128_000, max_history_tokens=0, prompt_cache=True, **keys)
    rng, server = random.Random(3), CacheServer()
    messages: list[dict[str, Any]] = [SYSTEM]
    plan: ContextPlan | None = None
    uncached = new = trims = previous = 0
    fill = []
    for call in range(CALLS):
        fresh = [{"role": "user", "content": sentence(rng, 60)}]
        for step in range(3):
            fresh += iteration(rng, f"c{call}_{step}", 900)
        messages += fresh
        prompt = build_final_prompt(messages, config, model=MODEL, plan=plan)
        plan, last = prompt.plan, len(prompt.messages) - 1
        marks = {0, last} | ({previous - 1} if 0 < previous <= last and last - previous > 15 else set())
        _, missed = server.request(prompt.messages, marks)
        uncached += missed
        new += sum(count_tokens(json.dumps(message, sort_keys=True), MODEL) for message in fresh)
        trims += prompt.report.trimmed
        report = prompt.report
        fill.append(report.bound / (report.window - report.reserve - report.margin))
        previous = len(prompt.messages)
        messages.append({"role": "assistant", "content": sentence(rng, 60)})
    settled = fill[next((at for at, share in enumerate(fill) if share > 0.9), 0) :]
    return (
        f"{name:<22} uncached {uncached / new:.2f} times the new tokens, {trims} trims, "
        f"mean prompt {sum(settled) / len(settled):.2f} of the budget once it was full"
    )
