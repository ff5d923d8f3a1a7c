"""Ask a provider for the exact token count of a request, without sending the request itself.

The endpoints are used as documented, and were tried on real servers where possible: Anthropic's
`/v1/messages/count_tokens`, Gemini's `:countTokens`, vLLM's `/tokenize`, llama.cpp's
`/v1/chat/completions/input_tokens` (older versions: `/apply-template` and `/tokenize`). A question is sent
only to where the request itself would be sent, with the same key. Answers are untrusted: one that is not a
count is ignored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, JsonObject
from rolling_chat.providers.addresses import is_private_address, token_counter, without_credentials
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.providers.native_requests import NativeQuestion, anthropic_question, gemini_question
from rolling_chat.providers.plain_http import fetch
from rolling_chat.providers.served import headers_for

_log = logging.getLogger("rolling_chat.providers.exact_counts")

_MAX_TOKENS = 1_000_000_000  # a larger number is not a token count
_MAX_CACHED = 64  # counts in the cache
_MAX_FAILURES = 2  # consecutive failures after which a server is no longer asked
_SENT = ("messages", "tools", "tool_choice")
# statuses for a path that the server does not have, and for a question that it does not understand
_ABSENT, _NOT_UNDERSTOOD = frozenset({404, 405, 501}), frozenset({400, 415, 422})
# errors for an answer that differs from the documented format
_NO_COUNT = (LookupError, TypeError, ValueError)


class _NoEndpointError(LookupError):
    """Raised when the server does not have the endpoint."""


class ExactCounter:
    """Asks for exact token counts; thread-safe.

    It remembers which endpoint a server has, so that a server without one is asked only once, and caches
    counts by question. `environ` contains the keys and proxies.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._endpoints: dict[str, _Endpoint | None] = {}  # by server; None for one that cannot count
        self._failures: Counter[str] = Counter()
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, arguments: Mapping[str, Any], timeout: float) -> int:
        """Return the tokens of the request that litellm would make from `arguments`; 0 if unknown.

        `timeout` is in seconds for each read. Blocks until the server answers: call it in a thread.
        """
        model, address = arguments["model"], arguments.get("api_base")
        place = f"{model} {without_credentials(address or '')}".strip()
        if self._failures[place] >= _MAX_FAILURES or self._uses_proxy(address):
            return 0
        self._failures[place] += 1  # reset by an answer; the caller may have stopped waiting by then
        try:
            match token_counter(model, address):
                case "anthropic":
                    tokens = self._ask_provider(anthropic_question(arguments), "input_tokens", timeout)
                case "gemini":
                    tokens = self._ask_provider(gemini_question(arguments), "totalTokens", timeout)
                case "server":
                    tokens = self._ask_server(str(address), arguments, timeout)
                case _:
                    return 0
        except Exception as error:  # litellm may raise almost anything
            _log.info("%s was not counted: %s", place, error)
            self._failures[place] += _MAX_FAILURES * isinstance(error, _NoEndpointError)
            return 0
        self._failures[place] = 0
        return tokens

    def _ask_provider(self, question: NativeQuestion, field: str, timeout: float) -> int:
        return self._cached(
            question.url,
            question.body,
            lambda body: _tokens(_answer(question.url, question.headers, body, timeout)[field]),
        )

    def _ask_server(self, address: str, arguments: Mapping[str, Any], timeout: float) -> int:
        root, headers = _root(address), headers_for(address, self._environ, arguments["model"])
        headers |= {"content-type": "application/json"}
        name = ModelRef.parse(arguments["model"]).name

        def ask(path: str, body: JsonObject) -> Json:
            return _answer(f"{root}{path}", headers, _encoded(body), timeout)

        if address not in self._endpoints:
            self._endpoints[address] = _find_endpoint(ask, name)
        endpoint = self._endpoints[address]
        if endpoint is None:
            return 0
        body = {"model": name} | {key: arguments[key] for key in _SENT if key in arguments}
        return self._cached(root, body, lambda _: endpoint(ask, body))

    def _cached(self, url: str, body: JsonObject, ask: Callable[[bytes], int]) -> int:
        """Return the count for a body; ask for it only if it is not cached."""
        data = _encoded(body)
        key = hashlib.sha256(url.encode() + b"\0" + data).digest()
        with self._lock:
            known = self._counts.get(key)
        if known is None:
            known = ask(data)
            with self._lock:
                self._counts[key] = known
                if len(self._counts) > _MAX_CACHED:
                    self._counts.popitem(last=False)
        return known

    def _uses_proxy(self, address: str | None) -> bool:
        """Return whether a request to `address` uses a proxy, which questions must not bypass."""
        if is_private_address(address):
            return False
        parts = urlsplit(address or "https://")
        names = (f"{parts.scheme}_proxy", "all_proxy")
        if not any(self._environ.get(name) or self._environ.get(name.upper()) for name in names):
            return False
        exceptions = self._environ.get("no_proxy") or self._environ.get("NO_PROXY") or ""
        return not proxy_bypass_environment(parts.hostname or "", {"no": exceptions})


_Ask: TypeAlias = Callable[[str, JsonObject], Json]
_Endpoint: TypeAlias = Callable[[_Ask, JsonObject], int]


def _input_tokens(ask: _Ask, body: JsonObject) -> int:
    """Count by llama.cpp's endpoint, which takes the chat request itself."""
    return _tokens(ask("/v1/chat/completions/input_tokens", body)["input_tokens"])


def _vllm(ask: _Ask, body: JsonObject) -> int:
    known = {key: body[key] for key in ("model", "messages", "tools") if key in body}
    return _tokens(ask("/tokenize", known)["count"])


def _older_llama_cpp(ask: _Ask, body: JsonObject) -> int:
    """Count the text of the chat template by llama.cpp's tokenizer, parsing special tokens."""
    prompt = ask("/apply-template", body)["prompt"]
    if not isinstance(prompt, str):
        raise TypeError("its prompt is no text")
    question = {"content": prompt, "add_special": True, "parse_special": True}
    tokens = ask("/tokenize", question)["tokens"]
    return _tokens(len(tokens) if isinstance(tokens, list) else None)


_ENDPOINTS = (_input_tokens, _vllm, _older_llama_cpp)


def _find_endpoint(ask: _Ask, name: str) -> _Endpoint | None:
    """Find the endpoint that a server counts with, by a one-word question that reveals nothing.

    Raises OSError if the server does not answer, or not at present.
    """
    word: JsonObject = {"model": name, "messages": [{"role": "user", "content": "Hello"}]}
    for endpoint in _ENDPOINTS:
        try:
            endpoint(ask, word)
        except _NO_COUNT as error:
            _log.debug("no %s: %s", endpoint.__name__, error)
        else:
            return endpoint
    _log.info("the server of %s has no endpoint that counts", name)
    return None


def _answer(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Json:
    """Send a question. Raises LookupError for a missing endpoint, ValueError for invalid JSON, or OSError."""
    status, data = fetch(url, headers=headers, body=body, timeout=timeout)
    if status in _ABSENT:
        raise _NoEndpointError(f"status {status}")
    if status in _NOT_UNDERSTOOD:
        raise LookupError(f"status {status}")
    if status != 200:
        raise OSError(f"status {status}")
    return read_json(data)


def _root(address: str) -> str:
    return re.sub(r"/v1/?$", "", address.rstrip("/"))


def _encoded(body: JsonObject) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def _tokens(value: Json) -> int:
    """Return `value` if it can be a token count. Raises ValueError otherwise."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_TOKENS:
        return value
    raise ValueError("its answer is no count")
