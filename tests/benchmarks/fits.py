"""Fits, orphans, request kept, filled: beside langchain-core's `trim_messages`, in one run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rolling_chat.context import ContextConfig, build_final_prompt, estimate_tokens
from tests.benchmarks.workloads import agent_session, oversize_result
from tests.support.prompt_rules import broken_rules

MODEL = "gpt-4o"
WINDOW, RESERVE = 128_000, 4_096


def run() -> Iterator[str]:
    """One line a workload and a contestant."""
    yield f"window {WINDOW:,}, reserve {RESERVE:,}, {MODEL}"
    workloads = {
        "10k": agent_session(10_000),
        "oversize last": oversize_result(last=True),
        "oversize mid": oversize_result(last=False),
    }
    for name, messages in workloads.items():
        estimate_tokens(messages, MODEL)
        yield _line(name, "rolling_chat", messages, _ours)
        yield _line(name, "rolling_chat, no cap on results", messages, _uncapped)
        try:
            import langchain_core  # noqa: F401
        except ImportError:
            yield f"{name:<14} langchain trim_messages: not installed (pip install '.[benchmark]')"
            continue
        yield _line(name, "langchain trim_messages", messages, _langchain)


def _ours(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    config = ContextConfig(max_context_tokens=WINDOW, reserved_output_tokens=RESERVE, max_history_tokens=0)
    return build_final_prompt(messages, config, model=MODEL).messages


def _uncapped(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    config = ContextConfig(
        max_context_tokens=WINDOW,
        reserved_output_tokens=RESERVE,
        max_history_tokens=0,
        max_tool_result_tokens=10**9,
        trim_to=1.0,
    )
    return build_final_prompt(messages, config, model=MODEL).messages


def _langchain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

    trimmed = trim_messages(
        convert_to_messages(messages),
        max_tokens=WINDOW - RESERVE,
        token_counter=lambda given: estimate_tokens(convert_to_openai_messages(given), MODEL),
        include_system=True,
        start_on="human",
    )
    return list(convert_to_openai_messages(trimmed))


def _line(name: str, contestant: str, messages: list[dict[str, Any]], trim: Any) -> str:
    started = time.perf_counter()
    prompt = trim(messages)
    seconds = time.perf_counter() - started
    tokens = estimate_tokens(prompt, MODEL)
    fits = "fits" if tokens + RESERVE <= WINDOW else f"over by {tokens + RESERVE - WINDOW:,}"
    request = next(message for message in reversed(messages) if message["role"] == "user")
    kept = "request kept" if request in prompt else "request lost"
    filled = 100 * tokens / (WINDOW - RESERVE)
    problems = len(broken_rules(prompt))
    verdict = f"{fits}, {problems} broken rules, {kept}, {filled:.1f} % filled"
    return f"{name:<14} {contestant:<32} {seconds:6.2f} s  {verdict}"
