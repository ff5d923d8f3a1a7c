"""A line that matters, somewhere in a long result: is it in the prompt, or named with the id to read it by?

Kinds of output, each with several lines that differ from all others, at five places, under three caps; cut by
kind, by head, tail and both, and to random lines of the same size. Then the time that a megabyte takes.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rolling_chat.context import ContextConfig, CountMemo, build_final_prompt
from rolling_chat.context.tokens import estimator_for
from rolling_chat.context.tool_results import truncate_text
from tests.benchmarks.haystacks import KINDS, haystack

MODEL = "gpt-4o"
_COUNT = estimator_for(MODEL).count_text
CAPS = (8_000, 2_000, 500)
PLACES = (0.05, 0.33, 0.5, 0.67, 1.0)
STYLES = ("auto", "head", "tail", "both", "random")
_MARK = re.compile(r"\[… lines? (\d+)(?:-(\d+))?\]")
_MEGABYTES = 10


def run() -> Iterator[str]:
    """A line a cap, a line a kind, and the time."""
    yield f"needles in the prompt, {len(KINDS)} kinds, {len(PLACES)} places, {MODEL}"
    for cap in CAPS:
        kept: Counter[str] = Counter()
        by_kind: dict[str, str] = {}
        tried = 0
        for name in KINDS:
            of_kind, cases = _of_kind(name, cap)
            tried += cases
            kept.update(of_kind)
            by_kind[name] = f"{name} {100 * of_kind['auto'] / cases:.0f}"
        shares = ", ".join(f"{style} {100 * kept[style] / tried:5.1f}" for style in (*STYLES, "named"))
        yield f"cap {cap:>5,}: {shares} % of {tried}"
        yield f"           auto: {', '.join(by_kind.values())}"
    yield from _times()


def _of_kind(name: str, cap: int) -> tuple[Counter[str], int]:
    kept: Counter[str] = Counter()
    kind, cases = KINDS[name], 0
    for at, needle in enumerate(kind.needles):
        for place in PLACES:
            rng = random.Random(f"{name} {at} {place}")
            text = haystack(kind, needle, place, rng)
            wanted = _lines_of(text, needle)
            cases += 1
            for style in STYLES:
                sent = _random(text, cap, rng) if style == "random" else _sent(text, cap, style)
                is_kept = wanted in sent
                kept[style] += is_kept
                if style == "auto":
                    kept["named"] += is_kept or _is_named(text, wanted, sent)
    return kept, cases


def _lines_of(text: str, needle: str) -> str:
    """Return the needle as it stands in `text`, where an indented row takes several lines."""
    if needle in text:
        return needle
    start = text.index(needle.split(",", maxsplit=1)[0].strip("{").strip())
    return text[start : text.index("}", start)].rstrip()


def _is_named(text: str, wanted: str, sent: str) -> bool:
    line = text.count("\n", 0, text.index(wanted)) + 1
    named = ((int(match[1]), int(match[2] or match[1])) for match in _MARK.finditer(sent))
    return "[recall: r3" in sent and any(first <= line <= last for first, last in named)


def _sent(text: str, cap: int, style: Any) -> str:
    """Return what a prompt sends of a result, with a configuration that is made by hand."""
    config = ContextConfig(
        max_context_tokens=128_000, max_tool_result_tokens=cap, tool_result_truncation=style, recall=True
    )
    call = {"id": "c1", "type": "function", "function": {"name": "run_command", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful assistant."},
        {"role": "user", "content": "Look at this."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    prompt = build_final_prompt(messages, config, model=MODEL)
    return str(prompt.messages[-1]["content"])


def _random(text: str, cap: int, rng: random.Random) -> str:
    lines = text.split("\n")
    size = len(text) * cap // max(1, _COUNT(text))
    order = rng.sample(range(len(lines)), len(lines))
    chosen, used = [], 0
    for at in order:
        used += len(lines[at]) + 1
        if used > size:
            break
        chosen.append(at)
    return "\n".join(lines[at] for at in sorted(chosen))


def _times() -> Iterator[str]:
    for name, kind in KINDS.items():
        rng = random.Random(name)
        lines = [kind.line(rng, number) for number in range(kind.lines)]
        text = kind.wrap(lines * (_MEGABYTES * 1_000_000 // len(kind.wrap(lines))))
        counted = _time(lambda text=text: _COUNT(text))
        cut = _time(lambda text=text: truncate_text(text, CAPS[0], "auto", _COUNT, CountMemo()))
        yield f"{name:<16} {1000 * (cut - counted):6.1f} ms a megabyte to cut, {1000 * counted:5.1f} to count"


def _time(work: Callable[[], object]) -> float:
    """Return the processor time that `work` takes, in seconds a megabyte."""
    started = time.process_time()
    work()
    return (time.process_time() - started) / _MEGABYTES
