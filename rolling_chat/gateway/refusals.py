"""Refusals: those of providers, read, and the gateway's own, in the shape of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rolling_chat.context import ContextOverflowError
from rolling_chat.providers.overflow_errors import Overflow, find_overflow, is_throttling, read_body


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

    class OverflowRefusedError(ProxyException):  # type: ignore[misc, unused-ignore]
        """LiteLLM's answer, with OpenAI's code instead of the status."""

        def to_dict(self) -> dict[str, str | dict[str, object] | None]:
            return {**super().to_dict(), "code": refusal.code}

    return OverflowRefusedError(refusal.message, "invalid_request_error", "messages", 400, dict(headers))


def overflow_in(error: object) -> Overflow | None:
    """Return what a provider's error says of the window; None if it is about something else."""
    body = read_body(str(error))
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    if is_throttling(body, status):
        return None
    return find_overflow(body, status)
