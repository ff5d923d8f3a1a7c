"""Text of every kind that conversations are made of, the same for the same seed."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from typing import Any

_PROSE = (
    "the parser reads a line and keeps what it has seen so far because nobody else would remember it when "
    "something fails later on and the person wants to know which value was expected instead of this one"
)
_WORDS = _PROSE.split()
_CODE = "def read(self, path: str) -> int:|    return len(values[index + 1:])|if not found:|    x += 1"
_LINES = _CODE.split("|")
_CHINESE = "我们需要检查这个文件的内容然后修改解析器的代码以便它能够正确处理制表符和换行"
_EMOJI = "🙂🚀✅🔥👩‍💻"


def mixed_text(rng: random.Random, size: int) -> str:
    """About `size` characters of one kind, drawn from prose, code, JSON, logs, Chinese and, rarely, emoji."""
    kinds: list[Callable[[random.Random], str]] = [
        _prose,
        _prose,
        _prose,
        _code,
        _code,
        _json,
        _log,
        _chinese,
    ]
    kind = rng.choice(kinds) if rng.random() > 0.02 else _emoji
    text = ""
    while len(text) < size:
        text += kind(rng)
    return text[: max(1, size)]


def mixed_turn(rng: random.Random, number: int, *, largest: int = 3_000) -> list[dict[str, Any]]:
    """A request, up to three iterations with a tool, and the question that the next answer is for."""
    turn: list[dict[str, Any]] = [{"role": "user", "content": mixed_text(rng, rng.randint(5, largest // 4))}]
    for step in range(rng.randint(0, 3)):
        call_id = f"c{number}_{step}"
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{call_id}.py"})}
        turn += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": mixed_text(rng, rng.randint(5, largest))},
        ]
    return turn


def _prose(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(20)) + ". "


def _code(rng: random.Random) -> str:
    return "\n".join(rng.choice(_LINES) for _ in range(6)) + "\n"


def _json(rng: random.Random) -> str:
    row = {"id": rng.randrange(10**6), "name": rng.choice(_WORDS), "ok": True, "at": rng.random()}
    return json.dumps(row, separators=(",", ":")) + ","


def _log(rng: random.Random) -> str:
    request = uuid.UUID(int=rng.getrandbits(128))
    return f"2026-01-{rng.randint(10, 28)}T10:00:0{rng.randint(0, 9)}Z {request} GET /v1 200\n"


def _chinese(rng: random.Random) -> str:
    start = rng.randrange(len(_CHINESE))
    return _CHINESE[start:] + "。"


def _emoji(rng: random.Random) -> str:
    return rng.choice(_EMOJI) * 3
