"""Classify a failed request: one of a few kinds, and one line that tells the user what to do.

The decision uses status, code and text, never litellm's class alone: a plain `BadRequestError` may be a
prompt that is too long, an `InternalServerError` a refused connection, an `APIConnectionError` nearly
anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from rolling_chat.providers.addresses import describe_server, without_credentials
from rolling_chat.providers.error_facts import error_chain, error_text, nearest_status, retry_after, wait_in
from rolling_chat.providers.model_ref import ModelRef, find_provider, unknown_model_line
from rolling_chat.providers.ollama import ollama_base
from rolling_chat.providers.overflow_errors import (
    NO_NUMBERS,
    ErrorBody,
    Overflow,
    find_overflow,
    is_throttling,
    read_body,
)
from rolling_chat.providers.protocol import BROKEN_OFF, ErrorKind, ProviderError
from rolling_chat.providers.retries import PassingError
from rolling_chat.redaction import redact, secrets_in
from rolling_chat.text import printable

# Names of exceptions for a connection that failed or broke; names, so that neither httpx nor aiohttp has to
# be imported to recognize theirs.
_NETWORK_ERRORS = frozenset(
    {
        "ConnectError", "ConnectTimeout", "ReadError", "WriteError", "RemoteProtocolError", "PoolTimeout",
        "ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorSSLError",
        "ServerDisconnectedError", "ClientOSError", "ClientPayloadError", "ConnectionRefusedError",
        "ConnectionResetError", "ConnectionAbortedError", "BrokenPipeError", "gaierror", "SSLError",
        "IncompleteRead", "TransferEncodingError",
    }
)  # fmt: skip
# Errors for requests that cannot be sent: a key with characters that a header cannot carry, an invalid
# address.
_UNSENDABLE = frozenset(
    {"LocalProtocolError", "UnicodeEncodeError", "InvalidURL", "UnsupportedProtocol", "InvalidUrlClientError"}
)
_TIMEOUT_ERRORS = frozenset(
    {"Timeout", "APITimeoutError", "TimeoutError", "ReadTimeout", "WriteTimeout", "ServerTimeoutError",
     "SocketTimeoutError", "TimeoutException"}
)  # fmt: skip
_CONNECT_TIMEOUTS = frozenset({"ConnectTimeout", "PoolTimeout", "ConnectionTimeoutError"})
_TLS_TEXT = re.compile(r"certificate|\[SSL|\bTLS|SSL:|WRONG_VERSION_NUMBER", re.IGNORECASE)
_TLS_ERRORS = frozenset(
    {"SSLError", "SSLCertVerificationError", "ClientConnectorSSLError", "CertificateError"}
)
_NO_SUCH_HOST = re.compile(
    r"name or service not known|nodename nor servname|name resolution|getaddrinfo failed"
    r"|no address associated|name does not resolve",
    re.IGNORECASE,
)
_NETWORK_TEXT = re.compile(
    r"connection error|cannot connect to host|connection refused|name or service not known"
    r"|nodename nor servname|temporary failure in name resolution|network is unreachable"
    r"|all connection attempts failed|connection reset|server disconnected|peer closed connection",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"connection refused|connect call failed|all connection attempts failed|cannot connect to host",
    re.IGNORECASE,
)
_BAD_KEY_TEXT = re.compile(
    r"(?:invalid|incorrect|missing|wrong|no|expired|unset)[\w\s-]{0,20}(?:api[\s_-]?key|credentials|bearer)"
    r"|api[\s_-]?key[\w\s']{0,20}(?:not valid|invalid|missing|not set|must be set|not found|expired|required)"
    r"|api_key client option must be set|unable to locate credentials|could not resolve authentication"
    r"|api_key_invalid|default credentials were not found",
    re.IGNORECASE,
)
_UNKNOWN_MODEL_TEXT = re.compile(
    r"model_not_found|model[^.\n]{0,80}(?:not found|(?:does not|doesn't|not) exist|is not supported|unknown)"
    r"|(?:unknown|invalid|no such) model|llm provider not provided|not a valid model"
    r"|models/\S+ is not found",
    re.IGNORECASE,
)
# Ollama, older versions of llama.cpp, vLLM, OpenRouter
_NO_TOOLS_TEXT = re.compile(
    r"does not support tools|unsupported param: tools|tools param requires|enable-auto-tool-choice"
    r"|no endpoints found that support tool use",
    re.IGNORECASE,
)
_NO_CREDIT_TEXT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|billing|payment required|out of credits",
    re.IGNORECASE,
)
# Groq and others: the request exceeds what the account may send in one minute.
_MINUTE_LIMIT = re.compile(
    r"(?:request too large|tokens per min).{0,400}?limit:?\s*([\d,]+),?.{0,40}?requested:?\s*([\d,]+)",
    re.IGNORECASE | re.DOTALL,
)
_MAX_QUOTE = 200
_UNSUPPORTED = frozenset({501, 505})  # trying again later would not help
# Local servers answer 500 for a model that does not fit into memory.
_CANNOT_RUN_TEXT = re.compile(
    r"more system memory|(?:unable|failed|error) (?:to load|loading) (?:the )?model|out of memory",
    re.IGNORECASE,
)
# what HTTP clients say for any status
_BOILERPLATE = re.compile(r"(?:Client|Server) error '\d{3} |For more information check: ")
_WRAPPING = re.compile(r"(?:litellm\.\w+: |\w+Exception - |Error code: \d{3}(?: - |$))+")
_BYTES_LITERAL = re.compile(r"b(['\"])(.*)\1")
_PER_DAY = re.compile(r"per.?day|\b[TR]PD\b|daily", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """Facts for the error lines: the server's address, and similar model names.

    `timeout` is in seconds. `nearest` finds names of models similar to an unknown one.
    """

    model: str
    api_base: str | None = None
    environ: Mapping[str, str] | None = None
    nearest: Callable[[str], Sequence[str]] | None = None
    timeout: float = 0.0
    began: bool = False  # a part of the reply had arrived
    reached: bool = False  # the server has answered in this process


def classify(
    error: BaseException,
    model: str,
    *,
    api_base: str | None = None,
    environ: Mapping[str, str] | None = None,
    nearest: Callable[[str], Sequence[str]] | None = None,
    timeout: float = 0.0,
    began: bool = False,
    reached: bool = False,
) -> ProviderError:
    """Convert any exception of a request to a ProviderError; if its cause is one, return that unchanged.

    Throttling is ruled out before a refusal is interpreted as a prompt that is too long. `began` means that a
    part of the reply had arrived: temporary failures are then INTERRUPTED instead of being retried.
    """
    chain = tuple(error_chain(error))
    for link in chain:
        if isinstance(link, ProviderError):
            return link
    context = ErrorContext(model, api_base, environ, nearest, timeout, began, reached)
    secrets = secrets_in(environ or {})
    names = frozenset(type(link).__name__ for link in chain)
    text = "\n".join(dict.fromkeys(filter(None, map(error_text, chain))))
    body = read_body(text)
    status = nearest_status(chain)
    if status is None or "APIConnectionError" in names:  # litellm invented the status
        code = (body.numbers or {}).get("code", 0)
        if 400 <= code <= 599:
            status, names = code, names - {"APIConnectionError"}
    failure = _unsendable(context, names) or _decide(context, body, status, names)
    detail = redact(f"{type(error).__name__} (status {status}): {text}", secrets)
    kind_of_error = PassingError if failure.passes else ProviderError
    return kind_of_error(
        failure.kind,
        redact(failure.line, secrets),
        detail=detail,
        limit=failure.overflow.limit,
        requested=failure.overflow.requested,
        prompt=failure.overflow.prompt,
        retry_after=retry_after(chain, body.text) if failure.passes else None,
    )


@dataclass(frozen=True, slots=True)
class _Failure:
    kind: ErrorKind
    line: str
    overflow: Overflow = NO_NUMBERS
    passes: bool = False


def _decide(context: ErrorContext, body: ErrorBody, status: int | None, names: frozenset[str]) -> _Failure:
    provider = _provider_label(context)
    if is_throttling(body, status):
        return _throttled(context, body, provider)
    overflow = find_overflow(body, status)
    if overflow is not None or "ContextWindowExceededError" in names:
        return _too_long(context, overflow or NO_NUMBERS)
    if names & (_TIMEOUT_ERRORS | _CONNECT_TIMEOUTS):
        return _timed_out_failure(context, provider, names)
    if status in {401, 403} or "AuthenticationError" in names or _BAD_KEY_TEXT.search(body.text):
        return _bad_key(context, provider, status)
    if (failure := _model_failure(context, body, status, provider)) is not None:
        return failure
    is_answered = status is not None and 400 <= status < 500  # network errors in the text are not ours
    if names & _NETWORK_ERRORS or (not is_answered and _NETWORK_TEXT.search(body.text)):
        return _disconnected(context, body, provider, names)
    is_lasting = status in _UNSUPPORTED or _CANNOT_RUN_TEXT.search(body.text) is not None
    is_passing = status is not None and status >= 500 and not is_lasting
    if is_passing and "APIConnectionError" not in names:
        return _passing(context, ErrorKind.OVERLOADED, f"{provider} is overloaded or broken ({status}).")
    if is_answered or is_lasting:
        return _Failure(ErrorKind.BAD_REQUEST, f"{provider} refused the request: {_quote(body)}")
    return _Failure(
        ErrorKind.UNKNOWN, f"The request to {provider} failed: {_quote(body)} (the log file has more)"
    )


def _model_failure(
    context: ErrorContext, body: ErrorBody, status: int | None, provider: str
) -> _Failure | None:
    """Return the failure for a model that is unknown, not paid for, or does not accept tools; else None."""
    if _NO_TOOLS_TEXT.search(body.text):
        return _no_tools(context, provider)
    if _NO_CREDIT_TEXT.search(body.text) or status == 402:
        return _Failure(ErrorKind.THROTTLED, _no_credit(provider))
    if status == 404 or _UNKNOWN_MODEL_TEXT.search(body.text):
        return _Failure(ErrorKind.MODEL_UNKNOWN, _unknown_model(context, body))
    return None


def _no_tools(context: ErrorContext, provider: str) -> _Failure:
    """Return the failure for a model that does not accept tools; it can be given calls as text."""
    return _Failure(
        ErrorKind.BAD_REQUEST,
        f'{provider} takes no tool calls for {context.model}: put tool_calls = "text" below '
        f'[models."{context.model}"] in the settings, or use --tools none.',
    )


def _unsendable(context: ErrorContext, names: frozenset[str]) -> _Failure | None:
    """Return the failure for a request that could not be built; the client's message contains the key."""
    if context.began or not names & _UNSENDABLE:
        return None
    return _Failure(
        ErrorKind.BAD_REQUEST,
        f"The request to {_provider_label(context)} could not be made: "
        "check the characters of the key and the address.",
    )


def unreadable(model: str, api_base: str | None = None) -> ProviderError:
    """Build the error for an answer that contains no reply: a web page, or nothing at all."""
    provider = _provider_label(ErrorContext(model, api_base))
    return ProviderError(
        ErrorKind.UNKNOWN, f"{provider} sent nothing that can be read as an answer: is the address right?"
    )


def broken_off() -> ProviderError:
    """Build the error for a stream that ended before the answer did, without a broken connection."""
    return ProviderError(ErrorKind.INTERRUPTED, BROKEN_OFF)


def _unknown_model(context: ErrorContext, body: ErrorBody) -> str:
    """Name the unknown model, and quote the server.

    For a server of the user's own, the catalog's names are not suggested: it knows nothing about that server.
    """
    if context.api_base:
        line = f'Unknown model "{context.model}".'
    else:
        line = unknown_model_line(context.model, context.nearest(context.model) if context.nearest else ())
    server = describe_server(context.model, without_credentials(context.api_base or ""))
    return f"{line} {server} says: {_quote(body)}"


def _passing(context: ErrorContext, kind: ErrorKind, line: str) -> _Failure:
    return _interrupted(context) or _Failure(kind, line, passes=True)


def _interrupted(context: ErrorContext) -> _Failure | None:
    return _Failure(ErrorKind.INTERRUPTED, BROKEN_OFF) if context.began else None


def _timed_out_failure(context: ErrorContext, provider: str, names: frozenset[str]) -> _Failure:
    if names & _CONNECT_TIMEOUTS:
        return _passing(context, ErrorKind.NO_NETWORK, _no_network(context, provider))
    return _interrupted(context) or _Failure(ErrorKind.NO_NETWORK, _timed_out(context, provider))


def _disconnected(context: ErrorContext, body: ErrorBody, provider: str, names: frozenset[str]) -> _Failure:
    """Return the failure for a lost connection; a wrong address or certificate is not worth a retry."""
    line = _no_network(context, provider)
    if context.began:
        return _passing(context, ErrorKind.NO_NETWORK, line)
    if names & _TLS_ERRORS or _TLS_TEXT.search(body.text):
        line = f"No safe connection to {provider} (TLS): check its certificate, the address and the clock."
        return _Failure(ErrorKind.NO_NETWORK, line)
    is_unknown = "gaierror" in names or _NO_SUCH_HOST.search(body.text) is not None
    if is_unknown and not context.reached:
        return _Failure(ErrorKind.NO_NETWORK, line)
    is_refused = "ConnectionRefusedError" in names or _REFUSED.search(body.text) is not None
    if is_refused and _is_loopback(context):
        return _Failure(ErrorKind.NO_NETWORK, line)
    return _passing(context, ErrorKind.NO_NETWORK, line)


def _is_loopback(context: ErrorContext) -> bool:
    """Return whether the request went to this machine, where a refused connection means no server."""
    base = context.api_base or ""
    if not base and ModelRef.parse(context.model).is_ollama:
        base = (context.environ or {}).get("OLLAMA_API_BASE") or ollama_base(context.environ or {})
        base = base or "http://127.0.0.1"
    host = urlsplit(base).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.") or host.endswith(".localhost")


def _throttled(context: ErrorContext, body: ErrorBody, provider: str) -> _Failure:
    minute = _MINUTE_LIMIT.search(body.text)
    if minute:
        limit, requested = (int(group.replace(",", "")) for group in minute.groups())
        if requested > limit:
            return _Failure(
                ErrorKind.THROTTLED,
                f"The request ({requested:,} tokens) is over your account's per-minute limit at {provider} "
                f"({limit:,}): send less, or raise the limit there.",
                Overflow(limit=limit, requested=requested),
            )
    if _PER_DAY.search(body.text):
        return _Failure(ErrorKind.THROTTLED, f"Your account at {provider} has no quota left for today.")
    # Gemini uses the same words for a quota per minute, but names the time until it is renewed
    if _NO_CREDIT_TEXT.search(body.text) and wait_in(body.text) is None:
        return _Failure(ErrorKind.THROTTLED, _no_credit(provider))
    return _passing(context, ErrorKind.THROTTLED, f"{provider} asks to slow down (rate limit).")


def _too_long(context: ErrorContext, overflow: Overflow) -> _Failure:
    match overflow:
        case Overflow(limit=int(limit), requested=int(requested)):
            numbers = f"{requested:,} tokens where {limit:,} fit"
        case Overflow(limit=int(limit)):
            numbers = f"only {limit:,} tokens fit"
        case _:
            numbers = "the provider gave no numbers"
    line = (
        f"The prompt is too long for {context.model} ({numbers}): "
        "turn on /rolling-context, or start a /new session."
    )
    return _Failure(ErrorKind.TOO_LONG, line, overflow)


def _bad_key(context: ErrorContext, provider: str, status: int | None) -> _Failure:
    known = find_provider(context.model)
    if known is None or not known.keys:
        return _Failure(
            ErrorKind.BAD_KEY, f"{provider} refused access ({status or 'no key'}): set the key it asks for."
        )
    environ = context.environ or {}
    variable = next((name for name in known.keys if environ.get(name)), "")
    if variable:
        return _Failure(
            ErrorKind.BAD_KEY,
            f"{provider} does not accept the key in {variable}: check it, or set a new one.",
        )
    return _Failure(ErrorKind.BAD_KEY, f"No key for {known.name}: set {' or '.join(known.keys)}.")


def _timed_out(context: ErrorContext, provider: str) -> str:
    after = f" within {context.timeout:g} seconds" if context.timeout else ""
    return f"No answer from {provider}{after}; try again."


def _no_network(context: ErrorContext, provider: str) -> str:
    if ModelRef.parse(context.model).is_ollama:
        return "No connection to Ollama: is it running? Start it with: ollama serve"
    if context.api_base:
        return f"No connection to {provider}: is the server running, is the address right?"
    return f"No connection to {provider}: check the network."


def _no_credit(provider: str) -> str:
    return f"Your account at {provider} has no quota left: add credit there, or use another model."


def _provider_label(context: ErrorContext) -> str:
    if context.api_base:
        return urlsplit(context.api_base).netloc.rpartition("@")[2] or context.api_base
    ref = ModelRef.parse(context.model)
    return ref.provider or ref.prefix or ref.name or "the provider"


def _quote(body: ErrorBody) -> str:
    """Quote the error's message for people, or else its last line, without control characters."""
    lines = [*filter(None, map(_unwrapped, body.said or body.text.split("\n")))]
    quoted = lines[-1] if lines else "no reason given"
    return printable(" ".join(quoted.split()), _MAX_QUOTE)


def _unwrapped(line: str) -> str:
    """Remove what litellm and HTTP clients add to a line; empty if nothing is left."""
    bare = _WRAPPING.sub("", line.strip(), count=1) if _WRAPPING.match(line.strip()) else line.strip()
    spelled = _BYTES_LITERAL.fullmatch(bare)
    bare = spelled.group(2) if spelled else bare
    return "" if _BOILERPLATE.match(bare) else bare
