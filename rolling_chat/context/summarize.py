"""Make a summary: ask a model step by step, and check that its answers are grounded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rolling_chat.context.count_memo import CountMemo, CountText
from rolling_chat.context.summary_extraction import extract
from rolling_chat.context.summary_grounding import Verdict, expect, judge
from rolling_chat.context.summary_request import (
    Chunk,
    SummaryError,
    SummaryOptions,
    chunks_of,
    correction_text,
    listed,
    rejection_of,
    request_text,
    without_labels,
)
from rolling_chat.context.tokens import bounding_estimator, estimator_for
from rolling_chat.context.tool_results import first_lines
from rolling_chat.messages import Json, JsonObject, Message

_MIN_SAVED = 0.10

Wording: TypeAlias = Callable[[str, str, SummaryOptions], str]
"""Words a request for a summary: from the summary so far, the messages as text, and the options."""


class Summarized(NamedTuple):
    """Hold a summary, and the tokens of the messages that it was made of."""

    summary: str
    original_tokens: int


Summarised = Summarized  # the name of an earlier version


class MadeSummary(NamedTuple):
    """Hold a summary; `refused` says why a model's answer was rejected and the rule-based one taken."""

    text: str
    refused: str = ""


def summarize_context(
    messages: Sequence[Message] | Sequence[JsonObject],
    options: SummaryOptions | Mapping[str, Json] | None = None,
    *,
    ask: Callable[[str], str] | None = None,
    memo: CountMemo | None = None,
) -> Summarized:
    """Summarize `messages`; return the summary and the tokens of what it stands for.

    `ask` is a function from a prompt to a model's answer; it is called as often as the messages need
    to fit the prompts. Without it the summary is extracted by rule, and so it is where what the model says
    is not grounded in the messages or leaves their names out, also when asked again. `options` may be a
    dictionary of SummaryOptions' keys, `memo` as for `build_final_prompt`. Raises SummaryError where the
    model says nothing or saves too little.
    """
    chosen = options if isinstance(options, SummaryOptions) else SummaryOptions(**_keys(options))
    said = [m if isinstance(m, Message) else Message.from_dict(m) for m in messages]
    said = [message for message in said if message.role != "system"]
    count = estimator_for(chosen.model, "auto", memo=memo)
    original = count.count_messages(said) if said else 0
    if not said:
        return Summarized(chosen.previous, 0)
    if ask is None:
        return Summarized(extract(said, chosen.previous, chosen.max_tokens, count.count_text), original)
    steps = summary_steps(said, chosen, memo)
    try:
        prompt = next(steps)
        while True:
            prompt = steps.send(ask(prompt))
    except StopIteration as done:
        return Summarized(done.value, original)


def summary_steps(
    messages: Sequence[Message], options: SummaryOptions, memo: CountMemo | None = None
) -> Generator[str, str, str]:
    """Yield the prompts of a summary one by one; receive the model's answers, and return the summary.

    Raises SummaryError as `summarize_context` does.
    """
    return (yield from checked_steps(messages, options, memo)).text


def checked_steps(
    messages: Sequence[Message],
    options: SummaryOptions,
    memo: CountMemo | None = None,
    wording: Wording = request_text,
) -> Generator[str, str, MadeSummary]:
    """Do the same as `summary_steps`, but also return why the model's answers were rejected, if they were."""
    memo = memo if memo is not None else CountMemo()
    estimator = estimator_for(options.model, "auto", memo=memo)
    count, refused = estimator.count_text, ""
    summary = options.previous
    for chunk in chunks_of(messages, options, bounding_estimator(options.model).bound_part, memo):
        summary, refused = yield from _extended(summary, chunk, options, count, wording)
        if refused:
            summary = extract(messages, options.previous, options.max_tokens, count)
            break
    before = estimator.count_messages(messages) + count(options.previous)
    require_saving(count(summary), before)
    return MadeSummary(summary, refused)


def prompt_tokens(messages: Sequence[Message], options: SummaryOptions, memo: CountMemo | None = None) -> int:
    """Return the tokens of the prompts that `checked_steps` makes if each answer is accepted at once."""
    count, memo = estimator_for(options.model).count_text, memo if memo is not None else CountMemo()
    chunks = list(chunks_of(messages, options, bounding_estimator(options.model).bound_part, memo))
    frame = count(request_text("", "", options))
    # from the second on each has the summary so far, as long as it may be
    before = count(options.previous) + options.max_tokens * max(0, len(chunks) - 1)
    return before + sum(frame + count(chunk.text) for chunk in chunks)


def _extended(
    summary: str, chunk: Chunk, options: SummaryOptions, count: CountText, wording: Wording
) -> Generator[str, str, tuple[str, str]]:
    """`summary` with a chunk folded in, asked for once more where the answer is not accepted.

    The second is why the second answer is not either; else empty.
    """
    source = "\n".join((chunk.text, summary, options.focus))
    expected = expect(summary, chunk.said, options.max_tokens)
    prompt = wording(summary, chunk.text, options)
    text = _accepted((yield prompt), options, count)
    verdict = judge(text, source, expected)
    if verdict.is_grounded and verdict.is_complete:
        return text, ""
    text = _accepted((yield f"{prompt}\n\n{correction_text(verdict, options.max_tokens)}"), options, count)
    verdict = judge(text, source, expected)
    if verdict.is_fair:
        return _with_missing(text, verdict, options, count), ""
    return "", rejection_of(verdict)


def _with_missing(text: str, verdict: Verdict, options: SummaryOptions, count: CountText) -> str:
    """Append a line with what a corrected summary still leaves out, if that fits."""
    if not verdict.missing:
        return text
    line = f"Also mentioned: {listed(verdict.missing, options.max_tokens)}"
    kept = first_lines(text, max(1, options.max_tokens - count(line) - 1), count)
    return f"{kept}\n{line}" if kept else text


def require_saving(after: int, before: int) -> None:
    """Raise SummaryError if a summary of `after` tokens saves too little of `before` tokens."""
    if after > (1 - _MIN_SAVED) * before:
        raise SummaryError("the summary would save less than a tenth of what it stands for")


def _accepted(answer: str, options: SummaryOptions, count: CountText) -> str:
    text = without_labels(answer)
    if not text:
        raise SummaryError("the summarizer said nothing")
    kept = first_lines(text, options.max_tokens, count)
    if not kept:
        raise SummaryError("the summarizer answered with one line longer than a summary may be")
    return kept


def _keys(options: Mapping[str, Json] | None) -> dict[str, Json]:
    return dict(options or {})
