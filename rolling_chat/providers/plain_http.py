"""Send a single plain HTTP request: bounded in size and time, without redirects, and without litellm."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json

MAX_BYTES = 8_000_000
"""The default limit on the size of an answer."""

_JSON = MappingProxyType({"accept": "application/json", "content-type": "application/json"})


def fetch(
    url: str,
    *,
    headers: Mapping[str, str] = _JSON,
    body: bytes | None = None,
    timeout: float,
    max_bytes: int = MAX_BYTES,
) -> tuple[int, bytes]:
    """Return the status and at most `max_bytes` of the body; use POST if a `body` is given.

    `timeout` is in seconds for each read. Redirects are not followed. Raises OSError.
    """
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
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        connection.request("GET" if body is None else "POST", target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(max_bytes)
    except ValueError as error:
        raise OSError("the key or the address cannot be sent") from error  # the error quotes the key
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def fetch_json(
    url: str, *, headers: Mapping[str, str] = _JSON, body: bytes | None = None, timeout: float
) -> Json:
    """Return the JSON in an answer with status 200. Raises OSError for anything else."""
    status, data = fetch(url, headers=headers, body=body, timeout=timeout)
    if status != 200:
        raise OSError(f"status {status}")
    try:
        return read_json(data)
    except ValueError as error:
        raise OSError("its answer cannot be read") from error
