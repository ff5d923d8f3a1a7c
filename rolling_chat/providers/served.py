"""Which models a server has, by its own list (`/v1/models`)."""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urlsplit

from rolling_chat.lenient_json import read_json
from rolling_chat.providers.addresses import without_credentials
from rolling_chat.providers.model_ref import ModelRef, find_provider
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.text import one_line

_TIMEOUT = 5.0  # seconds for each read
_MAX_BYTES = 2_000_000
_MAX_NAMED = 8


def served_model(address: str, wanted: str, environ: Mapping[str, str]) -> str:
    """Return the model to ask at `address`: `wanted` where the server has it, else the only one there.

    Raises ProviderError with the list where there are several, and where the server gives none.
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

    `model` says by its provider which key is sent. No redirect is followed.
    """
    base = address.rstrip("/")
    for url in dict.fromkeys((f"{base}/models", f"{base}/v1/models")):
        status, body = _get(url, _headers(address, environ, model), timeout)
        if status == 200:
            return _names(body)
        if status != 404:
            break
    raise OSError(f"status {status}")


def listed(names: Sequence[str]) -> str:
    """Format the names of models as a short list for a line."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(one_line(name, 60) for name in names[:_MAX_NAMED]) + more if names else "no models"


def _headers(address: str, environ: Mapping[str, str], model: str) -> dict[str, str]:
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


def _get(url: str, headers: Mapping[str, str], timeout: float) -> tuple[int, bytes]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise OSError(str(error)) from error
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request(
            "GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers
        )
        answer = connection.getresponse()
        return answer.status, answer.read(_MAX_BYTES)
    except ValueError as error:
        raise OSError("the key or the address cannot be sent") from error  # the error quotes the key
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def _names(body: bytes) -> Sequence[str]:
    try:
        entries = read_json(body)["data"]
        return [str(entry["id"]) for entry in entries]
    except (ValueError, LookupError, TypeError) as error:
        raise OSError("its list cannot be read") from error
