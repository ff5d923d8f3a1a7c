"""Refusals: those of providers, read, and the gateway's own, in the shape of the wire."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from rolling_chat.context import ContextOverflowError, PromptReport
from rolling_chat.providers.overflow_errors import Overflow, find_overflow, is_throttling, read_body

LEAST_SHARE: Final = 1 / 8
"""A window that is said to be less than this share of the one that was planned for is some other number."""

# What a provider counts of a prompt, as a share of our estimate; beyond it is some other number.
_MIN_RATIO, _MAX_RATIO = 0.3, 6.0
_MOST_CAUSES = 3  # LiteLLM's error, that of its handler, that of the provider's package
_NEXT_SHARE = 0.75  # what the same request is planned for when nobody says how much would fit


class Lesson(NamedTuple):
    """What a refusal teaches: the window, the size of the prompt as it was counted, or only how much the same
    request may take when it comes again; in tokens, 0 for nothing."""

    limit: int = 0
    counted: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Say why a request cannot be made to fit: `message` has the words of the wire's own provider."""

    message: str
    code: str = "context_length_exceeded"


def refusal_of(error: ContextOverflowError, *, is_anthropic: bool) -> Refusal:
    """Return the refusal of a request that does not fit, in the words by which clients know one."""
    report = error.report
    largest = ", ".join(f"{name} {tokens:,}" for name, tokens in error.largest)
    why = f"Nothing more can be left out of it; the largest parts are: {largest}."
    if is_anthropic:
        return Refusal(f"prompt is too long: {error.current} tokens > {error.maximum} maximum. {why}")
    reserve = report.window - error.maximum
    return Refusal(
        f"This model's maximum context length is {report.window} tokens. However, you requested "
        f"{error.current + reserve} tokens ({error.current} in the messages, {reserve} in the completion). "
        f"Please reduce the length of the messages or completion. {why}"
    )


def proxy_error(refusal: Refusal, headers: Mapping[str, str]) -> Exception:
    """Return the exception that the proxy answers with status 400 in the shape of the wire."""
    from litellm.proxy._types import ProxyException  # noqa: PLC0415 - slow, and needed for refusals only

    class OverflowRefusedError(ProxyException):
        """LiteLLM's answer, with OpenAI's code instead of the status."""

        def to_dict(self) -> dict[str, str | dict[str, object] | None]:
            return {**super().to_dict(), "code": refusal.code}

    return OverflowRefusedError(refusal.message, "invalid_request_error", "messages", 400, dict(headers))


def overflow_in(error: object) -> Overflow | None:
    """Return what a provider's error says of the window; None if it is about something else.

    LiteLLM passes on the words of some errors and leaves the numbers behind: those are in what it was raised
    from.
    """
    found: Overflow | None = None
    for one in _causes(error):
        body, status = read_body(str(one)), getattr(one, "status_code", None)
        status = status if isinstance(status, int) else None
        if is_throttling(body, status):
            return None
        overflow = find_overflow(body, status)
        if overflow is not None and (found is None or _numbers(overflow) > _numbers(found)):
            found = overflow
    return found


def _causes(error: object) -> Iterator[object]:
    for _ in range(_MOST_CAUSES):
        yield error
        error = getattr(error, "__cause__", None) or getattr(error, "__context__", None)
        if error is None:
            return


def _numbers(overflow: Overflow) -> int:
    return sum(number is not None for number in (overflow.limit, overflow.requested))


def lesson_of(overflow: Overflow, report: PromptReport, answer: int) -> Lesson:
    """Return what a refusal of a prompt with room for `answer` tokens teaches.

    Numbers that contradict the request are not believed: a provider's error may quote what a client wrote.
    """
    nothing = Lesson(most=max(1, int(report.bound * _NEXT_SHARE)))
    limit, requested = overflow.limit, overflow.requested
    if limit is None or limit < report.window * LEAST_SHARE:
        return nothing
    if requested is None:
        return Lesson(limit) if report.unproven or limit < report.bound + answer else nothing
    parts = [requested, requested - answer] if 0 < answer < requested else [requested]
    estimate = max(1, report.token_count)
    counted = overflow.prompt or min(parts, key=lambda count: abs(math.log(count / estimate)))
    if requested <= limit or not _MIN_RATIO <= counted / estimate <= _MAX_RATIO:
        return nothing
    return Lesson(limit, counted)
