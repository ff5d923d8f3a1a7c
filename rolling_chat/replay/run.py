"""Replay one conversation through the pipeline, request by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    Fate,
    PromptReport,
    build_final_prompt,
)
from rolling_chat.context.tokens import estimator_for
from rolling_chat.messages import Message
from rolling_chat.replay.transcripts import Transcript


@dataclass(frozen=True, slots=True)
class Replayed:
    """One request of a replay, as it would have been sent.

    `request` counts from 1 within the conversation; the model was called before message `at_message`, which
    counts from 0. `overflow` is the error line of a refusal; the prompt is then empty, and `smallest_window`
    is the W that would have been enough. `cached_prefix_tokens` counts what the request has in common with
    the one sent before it: the tools, and the longest common prefix of the messages. `fates` counts messages
    by fate, with repaired ones counted as sent or omitted; `repairs` counts the reasons for repairs.
    """

    conversation: str
    request: int
    at_message: int
    report: PromptReport
    fates: Mapping[Fate, int]
    prompt: Sequence[Message]
    overflow: str = ""
    smallest_window: int = 0
    repairs: Mapping[str, int] = field(default_factory=dict)
    cached_prefix_tokens: int = 0


def replay(
    transcript: Transcript,
    config: ContextConfig,
    *,
    model: str = "",
    memo: CountMemo | None = None,
    plan: ContextPlan | None = None,
) -> Iterator[Replayed]:
    """Plan every request of a conversation in order, each from the previous plan.

    A request that cannot be made to fit is reported, and the next one continues with the last plan. `memo`
    caches earlier counts. The first request continues from `plan`, which may have sizes reported by the
    model.
    """
    memo = memo if memo is not None else CountMemo()
    tools = list(transcript.tools)
    estimator = estimator_for(model or None, config.token_estimator, memo=memo)
    prefix = _Prefix(estimator.count_message, estimator.count_tools(tools))
    repairs = _Repairs()
    for number, index in enumerate(request_points(transcript.messages), 1):
        branch = transcript.messages[:index]
        prompt: Sequence[Message] = ()
        overflow, smallest, cached = "", 0, 0
        try:
            final = build_final_prompt(
                branch, config, tools=tools or None, model=model or None, plan=plan, memo=memo
            )
        except ContextOverflowError as error:
            report, overflow, smallest = error.report, str(error), error.smallest_window
        else:
            prompt, report, plan = final.messages, final.report, final.plan
            cached = prefix.follow(prompt)
        repairs.update(report)
        yield Replayed(
            transcript.id,
            number,
            index,
            report,
            repairs.settle(report.fates),
            prompt,
            overflow=overflow,
            smallest_window=smallest,
            repairs=repairs.reasons,
            cached_prefix_tokens=cached,
        )


class _Repairs:
    """The fates of repaired messages.

    Only the rows of a report show them, and building the rows costs as much as the whole conversation: they
    are read only when something may have changed.
    """

    def __init__(self) -> None:
        self._count = 0
        self._sent = 0
        self.reasons: Mapping[str, int] = {}

    def update(self, report: PromptReport) -> None:
        """Update from the next report."""
        count = report.count(Fate.REPAIRED)
        if count == self._count and not (count and report.trimmed):
            return
        rows = [row for row in report.rows if row.fate is Fate.REPAIRED] if count else []
        self._count = count
        self._sent = sum(row.tokens_after > 0 for row in rows)
        self.reasons = Counter(row.reason for row in rows)

    def settle(self, fates: Mapping[Fate, int]) -> Mapping[Fate, int]:
        """Return `fates` with repaired messages counted as sent or omitted."""
        settled = Counter(fates)
        repaired = settled.pop(Fate.REPAIRED, 0)
        settled[Fate.SENT] += self._sent
        settled[Fate.OMITTED] += repaired - self._sent
        return settled


class _Prefix:
    """The last sent prompt, with the cumulative cost of its messages; each message is counted once."""

    def __init__(self, count: Callable[[Message], int], tools: int) -> None:
        self._count = count
        self._tools = tools
        self._prompt: list[Message] = []
        self._tokens = [0]

    def follow(self, prompt: Sequence[Message]) -> int:
        """Update to the next prompt; return the tokens that it has in common with the last one."""
        common = 0
        for old, new in zip(self._prompt, prompt, strict=False):
            if old is not new and old != new:
                break
            common += 1
        cached = self._tokens[common] + self._tools if self._prompt else 0
        del self._prompt[common:], self._tokens[common + 1 :]
        for message in prompt[common:]:
            self._prompt.append(message)
            self._tokens.append(self._tokens[-1] + self._count(message))
        return cached


def request_points(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which a model was called: `messages[:index]` is the input of the call.

    These are the indexes of all assistant messages, and the end if the last message awaits an answer: the
    request that would be sent next.
    """
    points = [index for index, message in enumerate(messages) if message.role == "assistant"]
    if messages and messages[-1].role not in {"assistant", "system"}:
        points.append(len(messages))
    return points
