"""Count accuracy: real sessions with reported usage, replayed in order.

The sessions stay outside the project: `ROLLING_CHAT_TRANSCRIPTS` names a folder of JSONL files, one
conversation a line with its `messages` and `usage`, a list of `{message_index, input_tokens, model}`:
what the provider reported for everything before that message. Most come without the system prompt and
the tools that were sent: what the first report is above our estimate of the messages is taken for these,
and off every report of the conversation.

A session is replayed three times: as it was, in a window in which it has to be trimmed, and by an
estimate that never learns. After a trim the truth is what remains of the reported increments: their
sum over the messages that were sent whole.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
    estimate_tokens,
)
from rolling_chat.context.report import Fate
from rolling_chat.messages import Message
from tests.benchmarks import first_requests

FOLDER = "ROLLING_CHAT_TRANSCRIPTS"
_WHOLE = 10_000_000
_SHARES = (0.5, 0.95)


@dataclass
class Tally:
    """Relative errors of the estimate from the third reply on, and what the bound missed."""

    errors: list[float] = field(default_factory=list)
    after_trim: list[float] = field(default_factory=list)
    under: list[float] = field(default_factory=list)
    beyond_margin: int = 0

    def add(self, prompt: FinalPrompt, reported: int, window: int) -> None:
        """Take in one request and what was reported for it."""
        error = abs(prompt.token_count - reported) / reported
        self.errors.append(error)
        if prompt.report.trimmed:
            self.after_trim.append(error)
        if prompt.report.bound < reported:
            self.under.append((reported - prompt.report.bound) / reported)
            self.beyond_margin += reported - prompt.report.bound > 0.02 * window

    def line(self) -> str:
        """The figures, in percent."""
        text = f"{len(self.errors):>5} requests, median {_shares(self.errors)}"
        if self.after_trim:
            text += f"; right after {len(self.after_trim)} trims {_shares(self.after_trim)}"
        most = f" (by {100 * max(self.under):.1f} % at most)" if self.under else ""
        return f"{text}; {len(self.under)} above u{most}, {self.beyond_margin} by more than 2 % of the window"


def run() -> Iterator[str]:
    """First requests, then a line for every file and way to replay it, and one for all."""
    yield from first_requests.run()
    folder = os.environ.get(FOLDER)
    if not folder:
        yield f"no sessions: set {FOLDER} to a folder of JSONL files"
        return
    totals: dict[str, Tally] = defaultdict(Tally)
    for path in sorted(Path(folder).glob("*.jsonl*")):
        of_file: dict[str, Tally] = defaultdict(Tally)
        measured: dict[str, Measurements] = {}
        for session in read_sessions(path):
            learned = measured.get(session.model, Measurements())
            for tallies in (of_file, totals):
                measured[session.model] = _replay(session, learned, tallies)
        for way, tally in of_file.items():
            yield f"{path.name.split('.')[0]:<12} {way:<10} {tally.line()}"
    for way, tally in totals.items():
        yield f"{'all':<12} {way:<10} {tally.line()}"


@dataclass(frozen=True)
class Session:
    """A conversation with one model, and what was reported before which message."""

    model: str
    messages: Sequence[Message]
    reports: Sequence[tuple[int, int]]


def _replay(session: Session, learned: Measurements, tallies: dict[str, Tally]) -> Measurements:
    """The session as it was, which is how a process learns; then the two others beside it."""
    largest = max(reported for _, reported in session.reports)
    after = _run(session, _WHOLE, learned, tallies["whole"])
    if largest > 2_000:
        _run(session, int(largest * 0.6), learned, tallies["trimmed"])
    memo = CountMemo()
    for number, (place, reported) in enumerate(session.reports):
        if number >= 2:
            estimate = estimate_tokens(session.messages[:place], session.model, memo=memo)
            tallies["unlearnt"].errors.append(abs(estimate - reported) / reported)
    return after


def replay_config(window: int, learned: Measurements) -> ContextConfig:
    """The pipeline in a window of so many tokens, in which only the size of the prompt makes it trim."""
    return ContextConfig(
        max_context_tokens=window,
        reserved_output_tokens=0,
        max_history_tokens=0,
        safety_margin=0.02,
        max_tool_result_tokens=1_000_000,
        tool_result_keep_first=0,
        tool_result_keep_last=0,
        calibration=learned.calibration,
    )


def _run(session: Session, window: int, learned: Measurements, tally: Tally) -> Measurements:
    messages, memo = session.messages, CountMemo()
    truth = Truth(session.reports, messages, session.model)
    plan: ContextPlan | None = None
    for number, (place, _) in enumerate(session.reports):
        config = replay_config(window, learned)
        try:
            prompt = build_final_prompt(messages[:place], config, model=session.model, plan=plan, memo=memo)
        except ContextOverflowError:
            return learned
        reported = truth.of(prompt)
        if number >= 2:
            tally.add(prompt, reported, max(window if window < _WHOLE else 0, 8_192))
        plan, group = confirm_count(prompt.plan, reported, memo=memo)
        learned = learned.add(group)
    return learned


class Truth:
    """What the provider would have reported for a prompt: the increments of what is in it.

    An increment is shared among its messages by our estimate; a message that was cut counts for as much
    of its share as our estimate says is left of it.
    """

    def __init__(self, reports: Sequence[tuple[int, int]], messages: Sequence[Message], model: str) -> None:
        self._shares: list[float] = []
        before = 0
        last = 0
        for place, reported in reports:
            sizes = [estimate_tokens([message], model) - 3 for message in messages[before:place]]
            whole = sum(sizes) or 1
            self._shares += [(reported - last) * size / whole for size in sizes]
            before, last = place, reported

    def of(self, prompt: FinalPrompt) -> int:
        """The tokens of a prompt."""
        total = 0.0
        for row in prompt.report.rows:
            share = self._shares[row.index]
            if row.fate in {Fate.SENT, Fate.REPAIRED}:
                total += share if row.tokens_after else 0
            elif row.tokens_after:
                total += share * row.tokens_after / max(1, row.tokens_before)
        return max(1, round(total))


def read_sessions(path: Path) -> Iterator[Session]:
    """The conversations of a file, in stretches with one model."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for usage in data.get("usage") or ():
                if usage.get("input_tokens") and usage.get("model"):
                    by_model[usage["model"]].append(usage)
            messages = [Message.from_dict(message) for message in data["messages"]]
            for model, usages in by_model.items():
                yield from _cut(model, messages, usages)


def _cut(model: str, messages: Sequence[Message], usages: Sequence[dict[str, Any]]) -> Iterator[Session]:
    """The stretches in which the prompt only grew: between them nobody wrote down what was done to it."""
    stretch: list[tuple[int, int]] = []
    offset = 0
    for usage in usages:
        place, reported = int(usage["message_index"]), int(usage["input_tokens"])
        if stretch and (reported - offset <= stretch[-1][1] or place <= stretch[-1][0]):
            if len(stretch) > 2:
                yield Session(model, messages, stretch)
            stretch = []
        if place == 0:
            continue
        if not stretch:
            offset = reported - estimate_tokens(messages[:place], model)
        stretch.append((place, reported - offset))
    if len(stretch) > 2:
        yield Session(model, messages, stretch)


def _shares(errors: Sequence[float]) -> str:
    ordered = sorted(errors)
    median, most = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in _SHARES)
    return f"{100 * median:.2f} %, 95th percentile {100 * most:.2f} %"
