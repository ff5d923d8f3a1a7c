"""The conversations that the figures are taken on; made here, the same at every run."""

from __future__ import annotations

import json
import random
from typing import Any

SYSTEM = {"role": "system", "content": "You are a careful assistant. " * 20}
_WORDS = [
    "parse",
    "token",
    "window",
    "budget",
    "prompt",
    "cache",
    "turn",
    "result",
    "plan",
    "trim",
    "mask",
    "file",
    "line",
    "error",
    "value",
]


def sentence(rng: random.Random, words: int) -> str:
    """Some words that cost about a token each."""
    return " ".join(rng.choice(_WORDS) for _ in range(words))


def iteration(rng: random.Random, call_id: str, result_words: int) -> list[dict[str, Any]]:
    """One call of a tool and its result."""
    function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{call_id}.py"})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": sentence(rng, result_words)},
    ]


def agent_session(messages: int, result_words: int = 350) -> list[dict[str, Any]]:
    """A long session with many tools, ending with a new request."""
    rng = random.Random(7)
    out = [SYSTEM]
    while len(out) < messages - 1:
        out.append({"role": "user", "content": sentence(rng, 40)})
        for step in range(rng.randint(1, 6)):
            out += iteration(rng, f"c{len(out)}_{step}", rng.randint(20, 2 * result_words))
        out.append({"role": "assistant", "content": sentence(rng, 80)})
    out.append({"role": "user", "content": sentence(rng, 40)})
    return out


def oversize_result(*, last: bool, tokens: int = 207_000) -> list[dict[str, Any]]:
    """A conversation with one giant result: the newest message, or in the middle."""
    rng = random.Random(11)
    out = [SYSTEM]
    for _ in range(20):
        out += [
            {"role": "user", "content": sentence(rng, 40)},
            {"role": "assistant", "content": sentence(rng, 80)},
        ]
    out.append({"role": "user", "content": sentence(rng, 40)})
    giant = iteration(rng, "giant", 5)
    giant[1]["content"] = "\n".join(sentence(rng, 12) for _ in range(tokens // 12))
    out += giant
    if not last:
        out.append({"role": "assistant", "content": sentence(rng, 80)})
        for _ in range(10):
            out += [
                {"role": "user", "content": sentence(rng, 40)},
                {"role": "assistant", "content": sentence(rng, 80)},
            ]
        out.append({"role": "user", "content": sentence(rng, 40)})
    return out
