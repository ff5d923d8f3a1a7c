"""Decide which requests are sent directly, and in which API format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rolling_chat.messages import JsonObject
from rolling_chat.providers.direct.anthropic_events import AnthropicEvents
from rolling_chat.providers.direct.anthropic_request import (
    anthropic_body,
    anthropic_headers,
    anthropic_url,
)
from rolling_chat.providers.direct.openai_events import OpenAIEvents
from rolling_chat.providers.direct.openai_request import openai_body, openai_headers, openai_url
from rolling_chat.providers.fragments import Fragment
from rolling_chat.providers.model_ref import ModelRef

# variables that change how litellm connects or builds requests
_LITELLM_SETTINGS = re.compile(
    r"SSL_(?:VERIFY|CERTIFICATE|SECURITY_LEVEL|ECDH_CURVE)|DEFAULT_MAX_TOKENS"
    r"|DEFAULT_REASONING_EFFORT_\w+|LITELLM_ANTHROPIC_DISABLE_URL_SUFFIX"
)


class EventReader(Protocol):
    """A reader for the events of one stream, each decoded from JSON."""

    def read(self, event: JsonObject) -> Fragment | None:
        """Return what an event adds to the reply. Raises AnswerError for one that reports an error."""
        ...


@dataclass(frozen=True, slots=True)
class DirectRequest:
    """A request as it is sent, and the reader for its answer."""

    url: str
    headers: Mapping[str, str]
    body: JsonObject
    reader: Callable[[], EventReader]


def direct_request(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> DirectRequest | None:
    """Return the request that litellm would send for `arguments`; None if litellm must send it."""
    if any(value and _LITELLM_SETTINGS.fullmatch(name) for name, value in environ.items()):
        return None
    if ModelRef.parse(arguments["model"]).provider == "anthropic":
        body = anthropic_body(arguments)
        if body is None or not _is_plain_address(anthropic_url(arguments)):
            return None
        return DirectRequest(anthropic_url(arguments), anthropic_headers(arguments), body, AnthropicEvents)
    url = openai_url(arguments)
    headers = openai_headers(arguments, environ) if _is_plain_address(url) else None
    body = None if headers is None else openai_body(arguments)
    return None if headers is None or body is None else DirectRequest(url, headers, body, OpenAIEvents)


def _is_plain_address(url: str) -> bool:
    """Return whether a request can be sent to `url` unchanged; litellm rewrites queries and fragments."""
    return url.startswith(("http://", "https://")) and not {"?", "#"} & set(url)
