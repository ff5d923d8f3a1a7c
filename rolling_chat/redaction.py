"""Recognize secrets by name and by shape, and keep them out of logs, error lines, exports and commands."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

_HIDDEN = "[hidden]"
_JsonLike = TypeVar("_JsonLike")

# Words that mark a secret anywhere in a variable's name: AWS_BEARER_TOKEN_BEDROCK.
_SECRET_WORD = re.compile(
    r"(?:(?:API|AUTH|ACCESS|SECRET|PRIVATE)KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|SSHPASS|CREDENTIAL|JWT)S?$"
)
# Words that mark a secret only at the end of a name: SSH_AUTH_SOCK and KEY_BINDINGS are no secrets.
_SECRET_AT_END = frozenset(
    {"KEY", "KEYS", "PASS", "PWD", "PAT", "AUTH", "CREDS", "COOKIE", "COOKIES", "DSN", "WEBHOOK"}
)
_SECRET_PAIRS = re.compile(
    r"(?:^|_)(?:(?:API|ACCESS|PRIVATE|SECRET|MASTER|ENCRYPTION|SIGNING)_KEYS?"
    r"|CONNECTION_STRING|CONN_STR|WEBHOOK_URL|AUTH_CONFIG|BW_SESSION|OP_SESSION)(?:_|$)"
)
# Facts about a secret are none, such as its location or lifetime. And a public key is public.
_ABOUT_A_SECRET = frozenset({"FILE", "PATH", "DIR", "URL", "URI", "ENDPOINT", "TTL", "LIFETIME", "EXPIRES"})
_PUBLIC = frozenset({"PUBLIC", "PUBLISHABLE"})
# The program's own settings, and token counts.
_NO_SECRET = re.compile(r"ROLLING_CHAT_|(?:^|_)(?:MAX|MIN|NUM|N)_(?:\w+_)?TOKENS$")
_ALONE = frozenset({"PWD", "PASS", "PAT", "KEYS"})  # no secrets as whole names: PWD is a folder

_SHAPES = re.compile(
    r"""
      (?P<scheme>\bbearer\s+
        | \b(?:x-api-key|api[-_ ]?key|access[-_ ]?token|authorization)["']?\s*[:=]\s*["']?
          (?:(?:bearer|basic)\s+)?)
      (?P<value>[^\s"',;)}\]]{6,})
    | (?P<query>[?&](?:key|api[-_]?key|token|access[-_]token|sig|signature|password|secret)=)
      (?P<parameter>[^&\s"']+)
    | (?P<url>\b[a-z][a-z0-9+.-]{0,20}://)(?:[^\s/?\#@"'<>:]*:[^\s/?\#"'<>]*|[^\s/?\#@"'<>:]{20,})(?P<at>@)
    | -----BEGIN\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----
      (?:.*?-----END\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----|.*\Z)
    | \beyJ[-_A-Za-z0-9]{8,9999}\.[-_A-Za-z0-9]{8,}(?:\.[-_A-Za-z0-9]*)?
    | \b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b
    | \bhooks\.slack\.com/(?:services|workflows|triggers)/[-_/A-Za-z0-9]+
    | \b(?:xox[a-z]|xapp)-[-A-Za-z0-9]{10,}
    | \b(?:AIza|ya29\.|SG\.)[-_.A-Za-z0-9]{11,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|dop_v1_)[-_A-Za-z0-9]{11,}
    | \b(?:sk|pk|rk|gsk|xai|hf|nvapi|pplx|csk|r8)[-_](?=[-_.A-Za-z]{0,200}[*0-9])[-_*.A-Za-z0-9]{11,}
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# Every match of the pattern above contains one of these, ignoring case.
_WORDS = (
    "bearer", "api", "access", "authorization", "key=", "token=", "sig=", "signature=", "password=",
    "secret=", "://", "private key", "eyj", "akia", "asia", "abia", "acca", "hooks.slack.com", "xox", "xapp",
    "aiza", "ya29.", "sg.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-",
    "dop_v1_", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gsk-", "gsk_", "xai-", "xai_", "hf-", "hf_",
    "nvapi", "pplx", "csk", "r8-", "r8_",
)  # fmt: skip
_PART = 32_768  # characters; the pattern takes some 15 ms for them
_REACH = 60  # characters before a cut that may belong to a secret after it
_KEY_BLOCK = re.compile("-----begin", re.IGNORECASE)  # a private key has several lines
_BLANKS = re.compile(r"\s+")
_BEFORE_A_SECRET = re.compile(
    r"(?:bearer|basic|key|token|authorization|api|access|[:=])[\"']?\s*[\"']?\s*\Z", re.IGNORECASE
)
# Database addresses that are no URLs. Only for variables, because in a text it may be code.
_CONNECTION = re.compile(
    r"(?:^|[;\s?&])(?:password|passwd|pwd)\s*=\s*[^\s;]|^[^\s/@:]+:[^\s@]+@(?:tcp|unix)\(", re.IGNORECASE
)
_USERINFO = re.compile(r"^[a-z][a-z0-9+.-]*://[^/?#\s]*:(?P<password>[^/?#\s]*)@", re.IGNORECASE)
# a shorter value is more likely an ordinary word than a key
_SHORTEST = 6


def is_secret_name(name: str) -> bool:
    """Return whether a variable, header or parameter of this name holds a secret."""
    upper = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    if _NO_SECRET.search(upper):
        return False
    words = upper.rstrip("_0123456789").split("_")
    if words[-1] == "ID" and len(words) > 1:
        words.pop()  # AWS_ACCESS_KEY_ID
    if _PUBLIC.intersection(words):
        return False
    if _SECRET_PAIRS.search(upper):
        return words[-1] not in _ABOUT_A_SECRET or "WEBHOOK" in words
    if words[-1] in _SECRET_AT_END:
        return len(words) > 1 or words[-1] not in _ALONE
    return words[-1] not in _ABOUT_A_SECRET and any(map(_SECRET_WORD.search, words))


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or by the shape of its value."""
    return is_secret_name(name) or any(shape.search(value) for shape in (_SHAPES, _CONNECTION))


def without_secrets(environ: Mapping[str, str], allowed: Collection[str] = ()) -> dict[str, str]:
    """Return `environ` without secrets, but with the variables named in `allowed`."""
    return {name: value for name, value in environ.items() if name in allowed or not is_secret(name, value)}


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values in `environ` that are secrets, and the passwords of addresses in it."""
    return frozenset(value for value in _secrets_in(environ) if len(value) >= _SHORTEST)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without any of `secrets`, and without anything that has the shape of one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return "".join(map(_redact_part, _parts(text)))


def _redact_part(text: str) -> str:
    # on a text without secrets, some fifty times faster than the pattern
    folded = text.casefold()
    return _SHAPES.sub(_hide, text) if any(word in folded for word in _WORDS) else text


def _parts(text: str) -> Iterator[str]:
    """Split a long text, never inside a secret: a running pattern blocks all other threads."""
    block = _KEY_BLOCK.search(text) if len(text) > 2 * _PART else None
    start, limit = 0, block.start() if block is not None else len(text)
    while limit - start > 2 * _PART:
        end = next(filter(partial(_is_safe_cut, text), _blanks(text, start + _PART)), len(text))
        if end > limit:
            break
        yield text[start:end]
        start = end
    yield text[start:]


def _blanks(text: str, start: int) -> Iterator[int]:
    return (found.end() for found in _BLANKS.finditer(text, start))


def _is_safe_cut(text: str, at: int) -> bool:
    """Return whether the text before a blank cannot belong to a secret after it, as in `api_key = x`."""
    return _BEFORE_A_SECRET.search(text, max(0, at - _REACH), at) is None and text[at : at + 1] not in {
        ":",
        "=",
    }


def redact_all(value: _JsonLike, secrets: Collection[str] = ()) -> _JsonLike:
    """Return a JSON-like value with every string in it redacted."""
    redacted: Any = value
    match value:
        case str():
            redacted = redact(value, secrets)
        case dict():
            redacted = {key: redact_all(one, secrets) for key, one in value.items()}
        case list() | tuple():
            redacted = type(value)(redact_all(one, secrets) for one in value)
    return redacted  # type: ignore[no-any-return]


class RedactingFilter(logging.Filter):
    """A log filter that redacts every record: its message and its traceback."""

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


def _secrets_in(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if is_secret(name, value):
            # in the forms in which it is sent and quoted in errors
            yield from {value, value.strip(), value.encode("unicode_escape").decode("ascii")}
            if match := _USERINFO.search(value):
                yield from {match["password"], unquote(match["password"])}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _hide(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["query"] or match["url"] or ""
    return f"{kept}{_HIDDEN}{match['at'] or ''}"
