"""Find a local Ollama and its address."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

_log = logging.getLogger("rolling_chat.providers.ollama")
_HOST = "127.0.0.1"
_PORT = 11434
DEFAULT_OLLAMA = f"http://{_HOST}:{_PORT}"
# Seconds. A local server answers in a few milliseconds; one that hangs must not delay the start.
_PROBE_TIMEOUT = 0.2


def probe_ollama(environ: Mapping[str, str], timeout: float = _PROBE_TIMEOUT) -> str | None:
    """Ask a local Ollama for its newest model, as `ollama/name`; None if none is running.

    Uses the address in OLLAMA_HOST, or else 127.0.0.1:11434. Takes at most twice `timeout` seconds, even if
    the server or the name resolver hangs.
    """
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(_models(environ, timeout)), daemon=True)
    thread.start()
    thread.join(2 * timeout)  # the name resolver has no timeout of its own
    return f"ollama/{found[0]}" if found else None


def ollama_base(environ: Mapping[str, str]) -> str:
    """Return the address that OLLAMA_HOST names; empty if it is not set."""
    if not environ.get("OLLAMA_HOST", "").strip():
        return ""
    host, port = _address(environ["OLLAMA_HOST"])
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _models(environ: Mapping[str, str], timeout: float) -> list[str]:
    # an import of 10 ms, needed only if no model was chosen
    from rolling_chat.providers.plain_http import fetch_json  # noqa: PLC0415

    host, port = _address(environ.get("OLLAMA_HOST", ""))
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        models = fetch_json(f"http://{server}/api/tags", timeout=timeout)["models"]
        return [str(entry["name"]) for entry in models if "embed" not in str(entry["name"])]
    except (OSError, LookupError, TypeError) as error:
        _log.debug("no Ollama at %s: %s", server, error)
        return []


def _address(value: str) -> tuple[str, int]:
    """Return host and port of OLLAMA_HOST, which may be a host, a host and port, or a URL."""
    value = value.strip()
    if not value:
        return _HOST, _PORT
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return _HOST, _PORT
    # a server that listens on all addresses is reachable on this machine
    everywhere = {None, "", "0.0.0.0", "::"}  # noqa: S104  # compared, not bound
    return _HOST if host in everywhere else str(host), port or _PORT
