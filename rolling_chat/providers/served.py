"""Query a server about its models: their names, windows and prices.

The sources are used as documented, and were tried on real servers where possible: `max_model_len` (vLLM) and
`context_length` (OpenRouter, LM Studio) in the list of models; `/props` of llama.cpp, the window of one slot;
`/api/v0/models` of LM Studio, the loaded length; `/api/show` of Ollama.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, JsonObject
from rolling_chat.providers.addresses import address_in, without_credentials
from rolling_chat.providers.model_ref import ModelRef, find_provider
from rolling_chat.providers.ollama import DEFAULT_OLLAMA
from rolling_chat.providers.plain_http import fetch, fetch_json
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.settings.catalog import NO_PRICES, Prices
from rolling_chat.text import one_line

_TIMEOUT = 5.0  # seconds for each read
_MAX_NAMED = 8
_MAX_TOKENS = 1_000_000_000
# keys in the list of models, most specific to the loaded model first
_WINDOW_KEYS = ("loaded_context_length", "max_model_len", "context_length", "max_context_length")
# errors for an answer that differs from the documented format
_BAD_ANSWER = (OSError, LookupError, TypeError, AttributeError)
_OPENROUTER = "https://openrouter.ai/api/v1"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A server's information on one of its models; sizes in tokens, 0 if unknown.

    `source` names where the window was found.
    """

    name: str
    window: int = 0
    max_output: int = 0
    prices: Prices = NO_PRICES
    source: str = ""


def served_model(address: str, wanted: str, environ: Mapping[str, str]) -> str:
    """Return the model to use at `address`: `wanted` if the server has it, or else its only model.

    Raises ProviderError, with the list if there are several models, or if the server lists none.
    """
    try:
        names = served_models(address, environ)
    except OSError as error:
        raise ProviderError(
            ErrorKind.MODEL_UNKNOWN,
            f"{without_credentials(address)} did not list its models ({error}); name one with --model",
        ) from error
    if wanted and (ref := ModelRef.parse(wanted)).prefix and ref.name in names:
        return wanted
    if wanted in names or len(names) == 1:
        return f"openai/{wanted if wanted in names else names[0]}"
    raise ProviderError(
        ErrorKind.MODEL_UNKNOWN,
        f"{without_credentials(address)} has {listed(names)}; choose one with --model",
    )


def served_models(
    address: str, environ: Mapping[str, str], model: str = "openai/", timeout: float = _TIMEOUT
) -> Sequence[str]:
    """Return the names of the models that the server at `address` lists. Raises OSError.

    The provider in `model` determines which key is sent. Redirects are not followed.
    """
    return [one.name for one in list_models(address, environ, model, timeout)]


def list_models(
    address: str, environ: Mapping[str, str], model: str = "openai/", timeout: float = _TIMEOUT
) -> Sequence[ServedModel]:
    """Return the models that the server at `address` lists, with its information. Raises OSError."""
    base = address.rstrip("/")
    for url in dict.fromkeys((f"{base}/models", f"{base}/v1/models")):
        status, body = fetch(url, headers=headers_for(address, environ, model), timeout=timeout)
        if status == 200:
            return _listing(body)
        if status != 404:
            break
    raise OSError(f"status {status}")


def ask_about(
    model: str, address: str, environ: Mapping[str, str], timeout: float = _TIMEOUT
) -> ServedModel | None:
    """Ask the server of `model` about it; None if the server does not say or cannot be reached.

    `address` may contain credentials; if empty, the environment's or the provider's default address is used.
    """
    ref = ModelRef.parse(model)
    server = address or address_in(environ, model)
    if ref.is_ollama:
        return _from_ollama(ref.name, server or DEFAULT_OLLAMA, timeout)
    if ref.served_by == "openrouter":
        return _from_list(ref.name, server or _OPENROUTER, environ, model, timeout)
    if not server:
        return None
    found = _from_list(ref.name, server, environ, model, timeout)
    if found is not None and found.window:
        return found
    root = re.sub(r"/v1/?$", "", server.rstrip("/"))
    headers = headers_for(server, environ, model)
    return _from_props(ref.name, root, headers, timeout) or _from_lm_studio(ref.name, root, headers, timeout)


def listed(names: Sequence[str]) -> str:
    """Format the names of models as a short list for a line."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(one_line(name, 60) for name in names[:_MAX_NAMED]) + more if names else "no models"


def _from_list(
    name: str, address: str, environ: Mapping[str, str], model: str, timeout: float
) -> ServedModel | None:
    with contextlib.suppress(OSError):
        return next((one for one in list_models(address, environ, model, timeout) if one.name == name), None)
    return None


def _from_props(name: str, root: str, headers: Mapping[str, str], timeout: float) -> ServedModel | None:
    with contextlib.suppress(*_BAD_ANSWER):
        props = fetch_json(f"{root}/props", headers=headers, timeout=timeout)
        window = _tokens(props["default_generation_settings"]["n_ctx"])
        return ServedModel(name, window, source="llama.cpp /props") if window else None
    return None


def _from_lm_studio(name: str, root: str, headers: Mapping[str, str], timeout: float) -> ServedModel | None:
    with contextlib.suppress(*_BAD_ANSWER):
        entries = fetch_json(f"{root}/api/v0/models", headers=headers, timeout=timeout)["data"]
        for entry in entries:
            if entry.get("id") == name and (window := _window(entry)):
                return ServedModel(name, window, source="LM Studio /api/v0/models")
    return None


def _from_ollama(name: str, address: str, timeout: float) -> ServedModel | None:
    """Ask Ollama: the Modelfile's parameters override the length in the model's metadata."""
    with contextlib.suppress(*_BAD_ANSWER):
        body = json.dumps({"model": name}).encode()
        details = fetch_json(f"{address.rstrip('/')}/api/show", body=body, timeout=timeout)
        found = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(details.get("parameters") or ""), re.MULTILINE)
        if found:
            return ServedModel(name, int(found[1]), source="Ollama's Modelfile")
        lengths = (
            _tokens(value) for key, value in details["model_info"].items() if key.endswith(".context_length")
        )
        window = next(filter(None, lengths), 0)
        return ServedModel(name, window, source="Ollama /api/show") if window else None
    return None


def headers_for(address: str, environ: Mapping[str, str], model: str) -> dict[str, str]:
    """Return the headers for a question to the server of `model`: its key, and the address's credentials."""
    headers = {"accept": "application/json"}
    provider = find_provider(model)
    key = provider.key_in(environ) if provider else ""
    if provider is not None and provider.name == "anthropic":
        headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
    elif key:
        headers["authorization"] = f"Bearer {key}"
    parts = urlsplit(address)
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["authorization"] = f"Basic {base64.b64encode(user).decode()}"
    return headers


def _listing(body: bytes) -> Sequence[ServedModel]:
    try:
        return list(_entries(read_json(body)["data"]))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise OSError("its list cannot be read") from error


def _entries(data: Sequence[JsonObject]) -> Iterator[ServedModel]:
    for entry in data:
        best = entry.get("top_provider") if isinstance(entry.get("top_provider"), Mapping) else {}
        yield ServedModel(
            str(entry["id"]),
            _window(entry),
            _tokens(best.get("max_completion_tokens") if best else None),
            _prices(entry.get("pricing")),
            "its list of models",
        )


def _window(entry: JsonObject) -> int:
    return next((size for key in _WINDOW_KEYS if (size := _tokens(entry.get(key)))), 0)


def _prices(pricing: Json) -> Prices:
    """Parse OpenRouter's prices, which are strings."""
    if not isinstance(pricing, Mapping):
        return NO_PRICES
    return Prices(
        _price(pricing.get("prompt")),
        _price(pricing.get("completion")),
        _price(pricing.get("input_cache_read")),
        _price(pricing.get("input_cache_write")),
    )


def _price(value: Json) -> float | None:
    try:
        price = float(value)
    except (TypeError, ValueError):
        return None
    return price if 0 <= price <= 1 else None


def _tokens(value: Json) -> int:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_TOKENS
    return value if usable else 0
