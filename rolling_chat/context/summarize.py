"""Make a summary: ask a model step by step, and check that its answers are grounded and complete."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.summary_extraction import extract
from rolling_chat.context.summary_pass import SummaryPass, Wording, texts_of
from rolling_chat.context.summary_request import SummaryError, SummaryOptions, chunks_of, request_text
from rolling_chat.context.tokens import bounding_estimator, estimator_for
from rolling_chat.messages import Json, JsonObject, Message

_MIN_SAVED = 0.10


class Summarized(NamedTuple):
    """A summary, and the token count of the messages that it was made from."""

    summary: str
    original_tokens: int


Summarised = Summarized  # the name of an earlier version


class MadeSummary(NamedTuple):
    """A summary; `refused` says why the model's answer was rejected and the rule-based summary used."""

    text: str
    refused: str = ""


def summarize_context(
    messages: Sequence[Message] | Sequence[JsonObject],
    options: SummaryOptions | Mapping[str, Json] | None = None,
    *,
    ask: Callable[[str], str] | None = None,
    memo: CountMemo | None = None,
    later: Sequence[Message] = (),
) -> Summarized:
    """Summarize `messages`; return the summary and the tokens of the messages it replaces.

    `ask` sends a prompt to a model and returns its answer; it is called as often as the messages need to fit
    the prompts. Without it, the summary is extracted by rule. The same happens if the model's answer is
    empty, not grounded in the messages or missing their names, even after a second attempt. `options` may be
    a dictionary of SummaryOptions' keys, `memo` is as for `build_final_prompt`. Names used by the `later`
    messages are kept first. Raises SummaryError if the summary saves too little.
    """
    chosen = options if isinstance(options, SummaryOptions) else SummaryOptions(**_keys(options))
    said = [m if isinstance(m, Message) else Message.from_dict(m) for m in messages]
    said = [message for message in said if message.role != "system"]
    count = estimator_for(chosen.model, "auto", memo=memo)
    original = count.count_messages(said) if said else 0
    if not said:
        return Summarized(chosen.previous, 0)
    if ask is None:
        text = extract(said, chosen.previous, chosen.max_tokens, count.count_text, later)
        return Summarized(text, original)
    steps = checked_steps(said, chosen, memo, later=later)
    try:
        prompt = next(steps)
        while True:
            prompt = steps.send(ask(prompt))
    except StopIteration as done:
        return Summarized(done.value.text, original)


def summary_steps(
    messages: Sequence[Message], options: SummaryOptions, memo: CountMemo | None = None
) -> Generator[str, str, str]:
    """Yield a summary's prompts one by one, receive the model's answers, and return the summary.

    Raises SummaryError as `summarize_context` does.
    """
    return (yield from checked_steps(messages, options, memo)).text


def checked_steps(
    messages: Sequence[Message],
    options: SummaryOptions,
    memo: CountMemo | None = None,
    wording: Wording = request_text,
    *,
    later: Sequence[Message] = (),
) -> Generator[str, str, MadeSummary]:
    """Work like `summary_steps`, but also return why the model's answers were rejected, if they were.

    The model is asked for names that the `later` messages use; these are kept first.
    """
    memo = memo if memo is not None else CountMemo()
    estimator = estimator_for(options.model, "auto", memo=memo)
    before = estimator.count_messages(messages) + estimator.count_text(options.previous)
    count = estimator.count_text
    summary_pass = SummaryPass(options, count, wording, texts_of(later), messages, before)
    summary, refused = options.previous, ""
    for chunk in chunks_of(messages, options, bounding_estimator(options.model).bound_part, memo):
        summary, refused = yield from summary_pass.extended(summary, chunk)
        if refused:
            summary = extract(messages, options.previous, options.max_tokens, count, later)
            break
    require_saving(count(summary), before)
    return MadeSummary(summary, refused)


def prompt_tokens(messages: Sequence[Message], options: SummaryOptions, memo: CountMemo | None = None) -> int:
    """Return the tokens of the prompts that `checked_steps` makes if every answer is accepted at once."""
    count, memo = estimator_for(options.model).count_text, memo if memo is not None else CountMemo()
    chunks = list(chunks_of(messages, options, bounding_estimator(options.model).bound_part, memo))
    frame = count(request_text("", "", options))
    # all but the first include the summary so far, which may have its maximum length
    before = count(options.previous) + options.max_tokens * max(0, len(chunks) - 1)
    return before + sum(frame + count(chunk.text) for chunk in chunks)


def require_saving(after: int, before: int) -> None:
    """Raise SummaryError if a summary of `after` tokens saves too little of `before` tokens."""
    if after > (1 - _MIN_SAVED) * before:
        raise SummaryError("the summary would save less than a tenth of what it replaces")


def _keys(options: Mapping[str, Json] | None) -> dict[str, Json]:
    return dict(options or {})
