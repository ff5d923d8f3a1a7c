"""Errors in the answers of servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from rolling_chat.messages import Json

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
# keyed by number and by text, because servers send both, along with codes of their own
_STATUSES: Mapping[int | str, int] = {
    **{status: status for status in range(100, 600)},
    **{str(status): status for status in range(100, 600)},
}


class AnswerError(Exception):
    """A refusal by the server: its status, message and headers.

    `status_code` is None for an error in the middle of a stream that names none. `body` is the whole event if
    `message` is only a part of it.
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
    """Return the error for the value of `error` in an event of a stream."""
    code = error.get("code") if isinstance(error, dict) else None
    status = _STATUSES.get(code) if isinstance(code, int | str) else None
    text = error if isinstance(error, str) else json.dumps({"error": error}, ensure_ascii=False)
    return AnswerError(text, status)
