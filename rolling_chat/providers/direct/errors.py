"""Errors that a server answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from rolling_chat.messages import Json

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
# as number and as text: servers write both, and codes of their own as well
_STATUSES: Mapping[int | str, int] = {
    **{status: status for status in range(100, 600)},
    **{str(status): status for status in range(100, 600)},
}


class AnswerError(Exception):
    """A server's refusal: its status, what it said, and the headers that came with it.

    `status_code` is None for one in the middle of a stream that names none; `body` is the event that it came
    in, where `message` is only a part of that.
    """

    def __init__(
        self,
        message: str,
        status_code: int | None = None,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: Json = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.body = body
        self.litellm_response_headers = headers


def error_in_stream(error: Json) -> AnswerError:
    """Return the error for what stands below `error` in an event of a stream."""
    code = error.get("code") if isinstance(error, dict) else None
    status = _STATUSES.get(code) if isinstance(code, int | str) else None
    text = error if isinstance(error, str) else json.dumps({"error": error}, ensure_ascii=False)
    return AnswerError(text, status)
