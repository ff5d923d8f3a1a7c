"""One more turn on 1k, 10k and 100k messages, with a warm plan."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from rolling_chat.context import ContextConfig, CountMemo, build_final_prompt
from rolling_chat.messages import Message
from tests.benchmarks.workloads import agent_session

_TURNS = 100


def run() -> Iterator[str]:
    """Milliseconds a build as the chat does it, and each size against the first; then without a memo."""
    medians = {size: _median(size, CountMemo()) for size in (1_000, 10_000, 100_000)}
    first = medians[1_000]
    for size, median in medians.items():
        yield f"{size:>7,} messages: {median:.2f} ms a turn, {median / first:.2f} times 1k"
    yield f"{1_000:>7,} messages, without a memo of counts: {_median(1_000, None):.2f} ms a turn"


def _median(size: int, memo: CountMemo | None) -> float:
    messages = [Message.from_dict(message) for message in agent_session(size, 60)]
    config = ContextConfig(max_context_tokens=200_000, prompt_cache=True)
    plan = build_final_prompt(messages, config, model="gpt-4o", memo=memo).plan
    times = []
    for number in range(_TURNS):
        messages += [Message("assistant", f"answer {number}"), Message("user", f"question {number}")]
        started = time.perf_counter()
        plan = build_final_prompt(messages, config, model="gpt-4o", plan=plan, memo=memo).plan
        times.append(1_000 * (time.perf_counter() - started))
    return statistics.median(times)
