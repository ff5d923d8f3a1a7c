"""The prompt caches of two providers, with what they know of why a prompt was not in them.

`log` has a word for every request: empty where the cache served what the request before had, else the
reason, in the words of the program, found from the provider's side: its entries, dead and alive. A request
that is `aside` is served and not judged, nor is it the one before the next.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import count_tokens

_LOOKBACK = 20  # blocks before a mark in which a cached prefix is found
_ADDED = re.compile(r"\n\n(?:\[conversation truncated|Summary of earlier conversation:)")
_SERVED = 0.9  # share of what the prompt before left in the cache


@dataclass(frozen=True)
class Block:
    """A block of a prompt: the digest and the tokens of all up to and with it; `ttl` of a mark in seconds."""

    digest: str
    tokens: int
    ttl: float = 0.0


@dataclass
class _Entry:
    tokens: int
    ttl: float
    used_at: float
    is_dropped: bool = False


@dataclass
class _Seen:
    """What a cache remembers of the request before: the model, the parts, and its newest entry."""

    model: str
    tools: str
    instructions: str
    entry: _Entry


def _never(_body: dict[str, Any]) -> bool:
    return False


@dataclass
class MarkedCache:
    """Anthropic's: the prefix up to each mark is written; the longest that ends near a mark is read."""

    clock: Callable[[], float] = time.monotonic
    least: int = 0
    aside: Callable[[dict[str, Any]], bool] = _never
    log: list[str] = field(default_factory=list)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _before: _Seen | None = None

    def drop_all(self) -> None:
        """Forget everything early, as a provider may."""
        for entry in self._entries.values():
            entry.is_dropped = True

    def use(self, body: dict[str, Any], blocks: Sequence[Block]) -> tuple[int, dict[float, int]]:
        """Return the tokens read from the cache, and those written to it by time to live."""
        now, marks = self.clock(), [index for index, block in enumerate(blocks) if block.ttl]
        near = {index for mark in marks for index in range(max(0, mark - _LOOKBACK + 1), mark + 1)}
        known = [(blocks[index].tokens, self._entries.get(blocks[index].digest)) for index in near]
        found = [(tokens, entry) for tokens, entry in known if entry is not None]
        alive = [(tokens, entry) for tokens, entry in found if not _is_dead(entry, now)]
        read = max((tokens for tokens, _ in alive), default=0)
        for tokens, entry in alive:
            if tokens <= read:
                entry.used_at = now
        written: dict[float, int] = {}
        held = read
        for mark in marks:
            block = blocks[mark]
            if block.tokens < self.least:
                continue
            if block.tokens > held:
                written[block.ttl] = written.get(block.ttl, 0) + block.tokens - held
                held = block.tokens
            self._entries[block.digest] = _Entry(block.tokens, block.ttl, now)
        if not self.aside(body):
            entry = self._entries[blocks[marks[-1]].digest] if written or held else _Entry(0, 0.0, now)
            self._note(body, read, entry, now)
        return read, written

    def _note(self, body: dict[str, Any], read: int, entry: _Entry, now: float) -> None:
        system = body.get("system") or ""
        first = system if isinstance(system, str) else system[0]["text"]
        choice = json.dumps([body.get("tool_choice"), body.get("thinking")])
        seen = _Seen(body["model"], json.dumps(body.get("tools")) + choice, first, entry)
        self.log.append(_reason(self._before, seen, read, now))
        self._before = seen


@dataclass
class PrefixCache:
    """OpenAI's: any beginning that an earlier prompt had, from 1,024 tokens on, in steps of 128."""

    clock: Callable[[], float] = time.monotonic
    ttl: float = 300.0
    least: int = 1_024
    step: int = 128
    aside: Callable[[dict[str, Any]], bool] = _never
    log: list[str] = field(default_factory=list)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _before: _Seen | None = None

    def drop_all(self) -> None:
        """Forget everything early, as a provider may."""
        for entry in self._entries.values():
            entry.is_dropped = True

    def use(self, body: dict[str, Any], tokens: int) -> int:
        """Return the tokens of a prompt of so many that were read from the cache."""
        now = self.clock()
        system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
        text = json.dumps([body["model"], body.get("tools"), body["messages"]], sort_keys=True)
        read = 0
        for older, entry in self._entries.items():
            shared = 0 if _is_dead(entry, now) else self._tokens(_beginning(older, text), text, tokens)
            if shared > read:
                read = shared
                entry.used_at = now
        held = tokens // self.step * self.step if tokens >= self.least else 0
        # the newest beginnings are enough: each holds the ones before it
        self._entries = dict([*self._entries.items()][-3:]) | {text: _Entry(held, self.ttl, now)}
        instructions = _ADDED.split(system)[0]
        if not self.aside(body):
            seen = _Seen(body["model"], json.dumps(body.get("tools")), instructions, self._entries[text])
            self.log.append(_reason(self._before, seen, read, now))
            self._before = seen
        return read

    def _tokens(self, beginning: str, text: str, tokens: int) -> int:
        if len(beginning) == len(text):
            return tokens // self.step * self.step
        share = count_tokens(beginning, "gpt-4o") / max(1, count_tokens(text, "gpt-4o"))
        shared = int(share * tokens) // self.step * self.step
        return shared if shared >= self.least else 0


def _is_dead(entry: _Entry, now: float) -> bool:
    return entry.is_dropped or now - entry.used_at > entry.ttl


def _reason(before: _Seen | None, seen: _Seen, read: int, now: float) -> str:
    if before is None or read >= _SERVED * before.entry.tokens:
        return ""
    if before.model != seen.model:
        return "model"
    if now - before.entry.used_at > before.entry.ttl:
        return "expired"
    if before.tools != seen.tools:
        return "tools"
    if before.instructions != seen.instructions:
        return "instructions"
    return "provider" if before.entry.is_dropped else "trimmed"


def _beginning(one: str, other: str) -> str:
    """What both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return one[:low]
