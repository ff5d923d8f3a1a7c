"""Find model servers on this machine, on their default ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from rolling_chat.messages import JsonObject
from rolling_chat.providers.ollama import DEFAULT_OLLAMA, ollama_base
from rolling_chat.providers.plain_http import fetch_json
from rolling_chat.providers.served import ServedModel, ask_about, list_models

_TIMEOUT = 0.3  # seconds for each read: a local server answers in milliseconds
_MAX_ASKED = 12  # models per server whose windows are requested one by one
# no key is sent to unknown programs on these ports
_NO_KEYS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class UsualServer:
    """A kind of server, its default address, and the prefix of its models' names."""

    name: str
    address: str
    prefix: str


USUAL_SERVERS = (
    UsualServer("LM Studio", "http://127.0.0.1:1234/v1", "lm_studio"),
    UsualServer("llama.cpp", "http://127.0.0.1:8080/v1", "openai"),
    UsualServer("vLLM", "http://127.0.0.1:8000/v1", "hosted_vllm"),
)


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that answered, with the models that --model accepts."""

    name: str
    address: str
    models: Sequence[ServedModel]


def find_servers(
    environ: Mapping[str, str], usual: Iterable[UsualServer] = USUAL_SERVERS
) -> Sequence[FoundServer]:
    """Query all default ports of this machine in parallel; return the servers that have models."""
    others = tuple(usual)
    with ThreadPoolExecutor(len(others) + 1) as pool:
        ollama = pool.submit(_ollama, ollama_base(environ) or DEFAULT_OLLAMA)
        found = (ollama.result(), *pool.map(_like_openai, others))
    return [server for server in found if server is not None and server.models]


def _ollama(address: str) -> FoundServer | None:
    try:
        entries: Sequence[JsonObject] = fetch_json(f"{address}/api/tags", timeout=_TIMEOUT)["models"]
        names = [f"ollama/{entry['name']}" for entry in entries if "embed" not in str(entry["name"])]
    except (OSError, LookupError, TypeError):
        return None
    return FoundServer("Ollama", address, [_with_details(name, address) for name in names[:_MAX_ASKED]])


def _like_openai(usual: UsualServer) -> FoundServer | None:
    try:
        served = list_models(usual.address, _NO_KEYS, timeout=_TIMEOUT)
    except OSError:
        return None
    models = [replace(one, name=f"{usual.prefix}/{one.name}") for one in served]
    detailed = (one if one.window else _with_details(one.name, usual.address) for one in models[:_MAX_ASKED])
    return FoundServer(usual.name, usual.address, [*detailed, *models[_MAX_ASKED:]])


def _with_details(name: str, address: str) -> ServedModel:
    details = ask_about(name, address, _NO_KEYS, _TIMEOUT)
    return replace(details, name=name) if details is not None else ServedModel(name)
