"""Read the status, the text and the waiting time from the exceptions of a failed request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from time import time

_UNIT = r"(?:ms|milliseconds?|h(?:ours?)?|m(?:in(?:utes?)?)?|s(?:ec(?:onds?)?)?)(?![a-z])"
_WAIT = re.compile(
    r"(?:(?:retry|try again|wait)(?: again)?(?: after| in| for)?:?|\"?retry_?(?:delay|after)\"?:) ?\"?"
    rf"((?:\d+(?:\.\d+)? ?{_UNIT}[ ,]*)+)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|h|m|s)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        error = original if isinstance(original, BaseException) else error.__cause__ or error.__context__


def error_text(error: BaseException) -> str:
    """Return the message and the body of an exception."""
    parts = [str(getattr(error, "message", "") or error)]
    body = getattr(error, "body", None)
    if body and not isinstance(body, bytes):
        parts.append(str(body))
    return "\n".join(dict.fromkeys(part for part in parts if part))


def nearest_status(chain: Sequence[BaseException]) -> int | None:
    """Return the status nearest to the wire; litellm assigns some failures a status that no server sent."""
    for error in reversed(chain):
        status = getattr(error, "status_code", None)
        if isinstance(status, str) and status.isdigit():
            status = int(status)
        if isinstance(status, int) and 100 <= status <= 599:
            return status
    return None


def retry_after(chain: Sequence[BaseException], text: str) -> float | None:
    """Return the seconds to wait that the server named: a number or date in a header, or else in its text."""
    for error in chain:
        for headers in (getattr(error, "litellm_response_headers", None), _response_headers(error)):
            if headers is None:
                continue
            if value := headers.get("retry-after-ms"):
                return _seconds(value, 0.001)
            if value := headers.get("retry-after"):
                return _seconds(value)
    return wait_in(text)


def wait_in(text: str) -> float | None:
    """Return the waiting time in a text, such as "try again in 1m2.5s" or "retry in 48.9s"; else None."""
    match = _WAIT.search(text)
    if match is None:
        return None
    spans = _SPAN.findall(match.group(1))
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in spans) if spans else None


def _response_headers(error: BaseException) -> Mapping[str, str] | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return headers if hasattr(headers, "get") else None


def _seconds(value: str, unit: float = 1.0) -> float | None:
    try:
        return max(0.0, float(value) * unit)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (TypeError, ValueError):
        return None
