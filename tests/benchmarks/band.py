"""The gauge's band: which share of the true counts lies in it, and how wide it is.

First requests come from recorded usages, growing sessions from transcripts with usage. Both stay outside the
project: `ROLLING_CHAT_TRANSCRIPTS` names the folder of the transcripts, as for `accuracy`; beside it lies
`usage_truth.jsonl.gz`, one request a line with its `messages`, `tools`, `model` and `reported_input_tokens`.
Requests whose tools or pictures were not recorded are left out. Those with a schema for the answer or a
server's own tools are not, for the record does not tell them apart: they lie above the band.

Sessions are replayed as they were, with a third of the reports missing, and in a window in which they have to
be trimmed. What a reply was reported to be is used where the transcript has it.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.families import family_of
from rolling_chat.context.measured_sizes import characters_of, reply_size
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from tests.benchmarks.accuracy import FOLDER, Session, Truth, read_sessions, replay_config

_WHOLE = 10_000_000
_GOAL = 0.99
_WIDE_FROM = 500  # tokens of requests whose band is measured: of a few tokens framing is the most


@dataclass
class Tally:
    """How many true counts lay in the band, and how wide it was as a share of the estimate."""

    seen: int = 0
    inside: int = 0
    below: list[float] = field(default_factory=list)
    above: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def add(self, prompt: FinalPrompt, reported: int) -> None:
        """Take in one request and what was reported for it."""
        report = prompt.report
        self.seen += 1
        if report.token_count >= _WIDE_FROM:
            self.widths.append((report.below + report.above) / 2 / report.token_count)
        if reported < report.token_count - report.below:
            self.below.append(reported / max(1, report.token_count))
        elif reported > report.token_count + report.above:
            self.above.append(reported / max(1, report.token_count))
        else:
            self.inside += 1

    def line(self) -> str:
        """The figures, in percent."""
        share = self.inside / self.seen
        missed = f"{len(self.below)} below, {len(self.above)} above it"
        far = f", at most {max(map(_far, (*self.below, *self.above))):.0%} off" if share < 1 else ""
        text = f"{self.seen:>5} requests, {100 * share:.2f} % in the band{'' if share >= _GOAL else ' (!)'}, "
        text += missed + far
        if not self.widths:
            return text
        widths = sorted(self.widths)
        median, most = widths[len(widths) // 2], widths[int(0.95 * len(widths))]
        return f"{text}; half its width (of {len(widths)}): median {median:.1%}, 95th percentile {most:.1%}"


def run() -> Iterator[str]:
    """A line for every family's first requests, and for every way to replay the sessions."""
    folder = os.environ.get(FOLDER)
    if not folder:
        yield f"no sessions: set {FOLDER} to a folder of JSONL files"
        return
    first = _first_requests(Path(folder).parent / "usage_truth.jsonl.gz")
    for family, tally in sorted(first.items()):
        yield f"first, {family:<18} {tally.line()}"
    ways: dict[str, Tally] = defaultdict(Tally)
    measured: dict[str, Measurements] = {}
    for path in sorted(Path(folder).glob("*.jsonl*")):
        written = _written(path)
        for session in read_sessions(path):
            learned = measured.get(session.model, Measurements())
            measured[session.model] = _replay(session, written, learned, ways["growing"])
            _replay(session, written, learned, ways["a third unread"], unread=3)
            largest = max(reported for _, reported in session.reports)
            if largest > 2_000:
                _replay(session, written, learned, ways["trimmed"], window=int(largest * 0.6))
    for way, tally in ways.items():
        yield f"{way:<25} {tally.line()}"


def _first_requests(path: Path) -> dict[str, Tally]:
    tallies: dict[str, Tally] = defaultdict(Tally)
    if not path.exists():
        return tallies
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            if isinstance(data["tools"], str) or not data["text_only"] or not data["messages"]:
                continue
            config = ContextConfig(max_context_tokens=_WHOLE, reserved_output_tokens=0, enabled=False)
            messages = [Message.from_dict(message) for message in data["messages"]]
            prompt = build_final_prompt(messages, config, tools=data["tools"], model=data["model"])
            for name in (family_of(data["model"]).name, "all"):
                tallies[name].add(prompt, data["reported_input_tokens"])
    return tallies


def _written(path: Path) -> dict[tuple[str, int], int]:
    """The reported output tokens by model and by what the conversation says up to the reply's index."""
    opened = gzip.open if path.suffix == ".gz" else open
    found: dict[tuple[str, int], int] = {}
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            for usage in data.get("usage") or ():
                if usage.get("model") and usage.get("output_tokens"):
                    reply = data["messages"][usage["message_index"]] if _is_there(data, usage) else {}
                    if reply.get("role") == "assistant":
                        found[_key(usage["model"], Message.from_dict(reply))] = usage["output_tokens"]
    return found


def _is_there(data: dict[str, list[object]], usage: dict[str, int]) -> bool:
    return usage["message_index"] < len(data["messages"])


def _key(model: str, reply: Message) -> tuple[str, int]:
    return model, hash((reply.text, *((call.name, call.arguments) for call in reply.tool_calls)))


def _replay(
    session: Session,
    written: dict[tuple[str, int], int],
    learned: Measurements,
    tally: Tally,
    *,
    window: int = _WHOLE,
    unread: int = 0,
) -> Measurements:
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
        if number:
            tally.add(prompt, reported)
        plan = prompt.plan
        if unread and number % unread == unread - 1:
            continue
        plan, group = confirm_count(plan, reported, memo=memo)
        learned = learned.add(group)
        if place < len(messages):
            output = written.get(_key(session.model, messages[place]), 0)
            plan = _with_reply(plan, messages[: place + 1], session.model, output, learned)
    return learned


def _with_reply(
    plan: ContextPlan, messages: Sequence[Message], model: str, output: int, learned: Measurements
) -> ContextPlan:
    """The plan with what was reported of the newest message, a reply, as the agent adds it."""
    reply = messages[-1]
    size = reply_size(reply, output, bounding_estimator(model, learned.calibration))
    if size is None:
        return plan
    known = plan.measured.of(model).add_replies({(len(messages) - 1, characters_of(reply)): size})
    return replace(plan, measured=known)


def _far(ratio: float) -> float:
    return abs(ratio - 1)
