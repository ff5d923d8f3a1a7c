"""The turns that the figures are taken on: how long what is said is, and how fast it comes.

The lengths are assumed, not observed: each is lognormal, by its median and spread here. Whoever knows those
of a team's own sessions puts them in, and measures again. The text is this project's own: prose from its
pages, code from its modules.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.providers.protocol import Delta, Finished, Request, TextDelta, ToolCallDelta
from tests.support.agent import Script, ScriptedProvider

_ROOT = Path(__file__).parents[3]
_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
_TOKEN = 4  # characters


@dataclass(frozen=True, slots=True)
class Length:
    """A lognormal distribution of characters, cut at `most`."""

    median: int
    spread: float  # the standard deviation of the logarithm
    most: int

    def draw(self, rng: random.Random) -> int:
        """Return one length."""
        return min(self.most, max(1, round(self.median * math.exp(rng.gauss(0.0, self.spread)))))


QUESTION = Length(160, 1.0, 8_000)
REMARK = Length(120, 0.8, 2_000)  # what a reply says before its call
FILE = Length(1_800, 1.3, 40_000)  # what a result is mostly made of
ADDED = Length(300, 1.0, 4_000)  # what an edit adds to a file
ANSWER = Length(900, 0.9, 12_000)

REQUESTS = 5
"""Requests of a turn: three replies that read a file, one that edits one, and the answer."""

TURNS = 5
"""Turns of a session."""

DELTAS_A_SECOND = 50.0
"""How fast a reply comes, in pieces of a token."""

_FILES = 12  # of a working folder


class Mix:
    """Everything that one user and his model say, from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._calls = itertools.count(1)
        self._edits = [0] * _FILES

    def question(self) -> str:
        """Return what the user asks."""
        return self._prose(QUESTION)

    def answer(self) -> str:
        """Return what ends a turn."""
        return self._prose(ANSWER)

    def remark(self) -> str:
        """Return what a reply says before its call."""
        return self._prose(REMARK)

    def file_text(self) -> str:
        """Return the text of a file, or of the result that shows it."""
        return self._part(_code(), FILE.draw(self._rng))

    def fill_folder(self, folder: Path) -> None:
        """Write the files that the calls read and edit."""
        for number in range(_FILES):
            (folder / _name(number)).write_text(f"{_mark(0)}\n{self.file_text()}\n", encoding="utf-8")

    def replies(self) -> Iterator[Script]:
        """Yield the model's replies of one turn, as pieces that come one by one."""
        for _ in range(REQUESTS - 2):
            yield self._reply(self.remark(), "read_file", path=_name(self._rng.randrange(_FILES)))
        yield self._edit()
        yield self._reply(self.answer())

    def conversation(self) -> Iterator[dict[str, Any]]:
        """Yield messages in OpenAI's form without end: a client of the gateway sends ever more of them."""
        while True:
            yield {"role": "user", "content": self.question()}
            for _ in range(REQUESTS - 1):
                number = next(self._calls)
                function = {"name": "read_file", "arguments": json.dumps({"path": _name(number % _FILES)})}
                call = {"id": f"call_{number}", "type": "function", "function": function}
                yield {"role": "assistant", "content": self.remark(), "tool_calls": [call]}
                yield {"role": "tool", "tool_call_id": call["id"], "content": self.file_text()}
            yield {"role": "assistant", "content": self.answer()}

    def _edit(self) -> Script:
        number = self._rng.randrange(_FILES)
        old = _mark(self._edits[number])
        self._edits[number] += 1
        new = f"{_mark(self._edits[number])}\n{self._part(_code(), ADDED.draw(self._rng))}"
        return self._reply(self.remark(), "edit_file", path=_name(number), old=old, new=new)

    def _reply(self, text: str, tool: str = "", **arguments: str) -> Script:
        made: tuple[ToolCall, ...] = ()
        pieces: list[Delta] = [TextDelta(piece) for piece in _pieces(text)]
        if tool:
            made = (ToolCall(f"call_{next(self._calls)}", tool, json.dumps(arguments)),)
            pieces += [ToolCallDelta(0, made[0].id, tool, piece) for piece in _pieces(made[0].arguments)]
        return [*pieces, Finished(Message("assistant", text, tool_calls=made), Usage())]

    def _prose(self, length: Length) -> str:
        return self._part(_prose(), length.draw(self._rng))

    def _part(self, text: str, size: int) -> str:
        start = self._rng.randrange(len(text) - size)
        return text[start : start + size].strip() or "Go on."


class PacedProvider(ScriptedProvider):
    """A provider whose pieces come `a_second`; 0: all at once."""

    a_second = 0.0

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        loop = asyncio.get_running_loop()
        began, came = loop.time(), 0
        async for delta in super().stream(request):
            if self.a_second:
                await asyncio.sleep(max(0.0, began + came / self.a_second - loop.time()))
                came += 1
            yield _with_usage(delta, request)


def _with_usage(delta: Delta, request: Request) -> Delta:
    """Let the reply report about what a real provider would."""
    if not isinstance(delta, Finished):
        return delta
    characters = sum(len(message.text) for message in request.messages) + len(json.dumps(request.tools))
    return replace(delta, usage=Usage(characters // _TOKEN, len(delta.message.text) // _TOKEN, cost=0.01))


def lengths() -> Mapping[str, Length]:
    """Return every assumed length, by what it is of."""
    return {
        "question": QUESTION,
        "text before a call": REMARK,
        "file read": FILE,
        "text added by an edit": ADDED,
        "answer": ANSWER,
    }


def _name(number: int) -> str:
    return f"module_{number}.py"


def _mark(edits: int) -> str:
    return f"# edited {edits} times"


def _pieces(text: str) -> list[str]:
    return [text[start : start + _TOKEN] for start in range(0, len(text), _TOKEN)]


@cache
def _prose() -> str:
    return "\n".join((_ROOT / page).read_text(encoding="utf-8") for page in _PAGES)


@cache
def _code() -> str:
    modules = sorted((_ROOT / "rolling_chat").rglob("*.py"))
    return "\n".join(module.read_text(encoding="utf-8") for module in modules)
