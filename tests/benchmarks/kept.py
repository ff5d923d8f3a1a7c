"""What it keeps is what is needed: names and lines that the next message of the model uses, at equal tokens.

At each point of a transcript at which a model was called and not everything fits, every contestant gets as
many tokens as plain oldest-first took in that window. Columns: the share of the names that the next message
uses and that stood anywhere before, of the hard ones among them, and of the lines that it repeats word for
word; for ours the difference to oldest-first with its standard error, by blocks of requests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias, cast

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    CountMemo,
    FinalPrompt,
    build_final_prompt,
)
from rolling_chat.context_keys import TrimStrategy
from tests.benchmarks.kept_needs import COLUMNS, MODEL, Conversation, Needs, said_by
from tests.benchmarks.kept_rivals import most_found, recent_that_fit, trimmed_by_langchain
from tests.benchmarks.reading import NO_TRANSCRIPTS, conversations, transcript_files

WINDOWS = (8_000, 12_000, 20_000, 32_000)
NAMED = "with names"
"""Priority with what the program adds to it: the list of names that left, with their ids."""
OURS = ("priority", NAMED, "age")
BASE = "oldest-first"
_SHARE_OF_NAMES = 0.05
MOST = "at most"
_MOST_POINTS = 60
_ATTEMPTS = 6
_EQUAL = 1.02  # as many tokens: at most this share of them; plain oldest-first ends where a turn does
_BLOCK = 6  # requests in a row, which are much alike, count as one observation of the noise

# what was found and what was needed, by column
_Tally: TypeAlias = dict[str, int]


@dataclass
class Scores:
    """What each contestant found at each request, by column."""

    needed: list[_Tally] = field(default_factory=list)
    found: defaultdict[str, list[_Tally]] = field(default_factory=lambda: defaultdict(list))

    def share(self, name: str, column: str) -> float:
        """Return the share of what was needed that was found, in percent."""
        total = sum(tally[column] for tally in self.needed)
        return 100 * sum(tally[column] for tally in self.found[name]) / max(1, total)

    def difference(self, name: str, other: str, column: str) -> tuple[float, float]:
        """Return by how many points `name` is above `other`, and the standard error of that."""
        total = max(1, sum(tally[column] for tally in self.needed))
        pairs = zip(self.found[name], self.found[other], strict=True)
        deltas = [ours[column] - theirs[column] for ours, theirs in pairs]
        needed = [tally[column] for tally in self.needed]
        mean = sum(deltas) / total
        # the ratio's linearized residuals, summed over blocks
        rests = [delta - mean * size for delta, size in zip(deltas, needed, strict=True)]
        blocks = [sum(rests[at : at + _BLOCK]) for at in range(0, len(rests), _BLOCK)]
        return 100 * mean, 100 * math.sqrt(sum(block * block for block in blocks)) / total


def run() -> Iterator[str]:
    """A table a file and window: what each contestant keeps of what is needed."""
    files = transcript_files()
    if not files:
        yield NO_TRANSCRIPTS
    for path in files:
        for window in WINDOWS:
            scores = scores_of(path, window)
            if scores.needed:
                yield from _table(path.name.split(".")[0], window, scores)


def scores_of(path: Path, window: int, ours: Sequence[str] = OURS) -> Scores:
    """Measure every contestant on the conversations of a file."""
    scores = Scores()
    for given in conversations(path):
        told, memo = Conversation.of(given["messages"]), CountMemo()
        for at in _points(told, window):
            _score(_Request(told, at, window, memo), scores, ours)
    return scores


def _points(told: Conversation, window: int) -> Iterator[int]:
    """Where a model was called after something may have had to leave."""
    sizes, size = [], 0
    for own in told.sizes:
        sizes.append(size)
        size += own
    asked = [
        at
        for at, message in enumerate(told.messages)
        if at > 1 and message.role == "assistant" and sizes[at] > window / 2
    ]
    yield from asked[:: max(1, len(asked) // _MOST_POINTS)]


@dataclass(frozen=True)
class _Request:
    """One point of a conversation at which the model was called."""

    told: Conversation
    at: int
    window: int
    memo: CountMemo

    def build(self, contestant: str, limit: int = 0) -> FinalPrompt | None:
        """Build the prompt, in at most `limit` bound tokens if that is not 0."""
        is_named = contestant == NAMED
        strategy = "priority" if is_named else cast(TrimStrategy, contestant)
        config = ContextConfig(
            max_context_tokens=self.window,
            input_limit=limit,
            max_history_tokens=0,
            trim_to=1.0,
            trim_strategy=strategy,
            prompt_cache=True,
            omitted_names=_SHARE_OF_NAMES if is_named else 0.0,
            recall=is_named,
        )
        try:
            return build_final_prompt(self.told.messages[: self.at], config, model=MODEL, memo=self.memo)
        except ContextOverflowError:
            return None


def _score(request: _Request, scores: Scores, ours: Sequence[str]) -> None:
    told, at = request.told, request.at
    base = request.build(BASE)
    if base is None or not base.report.trimmed:
        return
    needs = Needs.of(told, at)
    if not needs.names and not needs.lines:
        return
    sent = {BASE: _said(base)}
    for name in ours:
        prompt = _held(partial(request.build, name), base)
        if prompt is None:
            return
        sent[name] = _said(prompt)
    room = base.token_count
    texts = {"recent that fit": recent_that_fit(told, at, room)}
    if find_spec("langchain_core"):
        texts["langchain"] = trimmed_by_langchain(told, at, room)
    found = {**sent, **{name: _texts(told, chosen) for name, chosen in texts.items()}}
    scores.needed.append({column: len(getattr(needs, column)) for column in COLUMNS})
    for name, text in found.items():
        scores.found[name].append(
            {column: sum(one in text for one in getattr(needs, column)) for column in COLUMNS}
        )
    scores.found[MOST].append(
        {column: most_found(told, at, room, getattr(needs, column)) for column in COLUMNS}
    )


def _held(build: Callable[[int], FinalPrompt | None], base: FinalPrompt) -> FinalPrompt | None:
    """Build a prompt of as many tokens as `base`, to a share, or as little less as can be."""
    low, high = 0, 2 * base.report.bound
    limit, best = int(base.report.bound * _EQUAL), None
    for _ in range(_ATTEMPTS):
        prompt = build(limit)
        if prompt is None:
            return best
        if prompt.token_count > base.token_count * _EQUAL:
            high = limit
        else:
            low = limit
            if best is None or prompt.token_count > best.token_count:
                best = prompt
        wanted = limit + base.token_count - prompt.token_count
        limit = wanted if low < wanted < high else (low + high) // 2
        if base.token_count <= prompt.token_count <= base.token_count * _EQUAL or high - low < 20:
            break
    return best


def _said(prompt: FinalPrompt) -> str:
    return "\n".join(map(said_by, prompt.messages))


def _texts(told: Conversation, chosen: set[int]) -> str:
    return "\n".join(told.texts[at] for at in sorted(chosen))


def _table(source: str, window: int, scores: Scores) -> Iterator[str]:
    counts = " ".join(f"{sum(tally[column] for tally in scores.needed):,} {column}" for column in COLUMNS)
    yield f"{source} at {window:,}: {len(scores.needed)} requests, {counts}"
    for name in scores.found:
        yield f"  {name:<16}" + "".join(map(_cell(scores, name), COLUMNS))


def _cell(scores: Scores, name: str) -> Callable[[str], str]:
    def cell(column: str) -> str:
        share = f"{scores.share(name, column):6.1f} %"
        if name in {BASE, MOST}:
            return f"{column:>8} {share}" + " " * 13
        points, error = scores.difference(name, BASE, column)
        return f"{column:>8} {share} {points:+5.1f} ±{error:4.1f}"

    return cell
