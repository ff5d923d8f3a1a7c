"""Keeping keys out of everything that is shown or logged."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rolling_chat.providers.known import key_variables

_HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|KEY_ID)$", re.IGNORECASE)
_SHAPES = re.compile(
    r"""
      (?P<scheme>\bbearer\s+
        | \b(?:x-api-key|api[-_ ]?key|access[-_ ]?token|authorization)["']?\s*[:=]\s*["']?
          (?:(?:bearer|basic)\s+)?)
      (?P<value>[^\s"',;)}\]]{6,})
    | (?P<query>[?&](?:key|api_key|token|access_token)=)(?P<parameter>[^&\s"']+)
    | \b(?:sk|pk|rk|gsk|xai|hf|nvapi|pplx|csk|r8|ghp|gho|github_pat|AKIA|AIza|ya29\.)
      [-_A-Za-z0-9][-_*.A-Za-z0-9]{10,}
    """,
    re.IGNORECASE | re.VERBOSE,
)
# a value shorter than this is more likely a word of the text than a key
_SHORTEST = 6


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """The values in `environ` that are keys, by the names of their variables."""
    known = key_variables()
    return frozenset(
        value
        for name, value in environ.items()
        if len(value) >= _SHORTEST and (name in known or _SECRET_NAME.search(name))
    )


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without any of `secrets`, and without what has the shape of a key."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return _SHAPES.sub(_hide, text)


class RedactingFilter(logging.Filter):
    """Redacts every record that passes: its message, and the traceback that comes with it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = frozenset(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(_message(record), self._secrets)
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text, self._secrets)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _hide(match: re.Match[Any]) -> str:
    kept = match.group("scheme") or match.group("query") or ""
    return kept + _HIDDEN
