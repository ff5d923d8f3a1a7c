"""One more turn on 1k, 10k and 100k messages, with a warm plan."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from rolling_chat.context import ContextConfig, build_final_prompt
from rolling_chat.messages import Message
from tests.benchmarks.workloads import agent_session

_TURNS = 100


def run() -> Iterator[str]:
    """Milliseconds a build, and each size against the first."""
    medians = {size: _median(size) for size in (1_000, 10_000, 100_000)}
    first = medians[1_000]
    for size, median in medians.items():
        yield f"{size:>7,} messages: {median:.2f} ms a turn, {median / first:.2f} times 1k"


def _median(size: int) -> float:
    messages = [Message.from_dict(message) for message in agent_session(size, 60)]
    config = ContextConfig(max_context_tokens=200_000, prompt_cache=True)
    plan = build_final_prompt(messages, config, model="gpt-4o").plan
    times = []
    for number in range(_TURNS):
        messages += [Message("assistant", f"answer {number}"), Message("user", f"question {number}")]
        started = time.perf_counter()
        plan = build_final_prompt(messages, config, model="gpt-4o", plan=plan).plan
        times.append(1_000 * (time.perf_counter() - started))
    return statistics.median(times)
