"""Determine where requests go: the address of a model's server, from settings and the environment.

litellm reads addresses from the environment at every request. A session keeps the address that it started
with, so the environment is read here, once, and then hidden from litellm (`hide_addresses`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from rolling_chat.providers.concurrency import answers_in_parallel
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.providers.ollama import ollama_base
from rolling_chat.redaction import is_secret_name

Counts: TypeAlias = Literal["", "anthropic", "gemini", "server"]
"""Who counts tokens: a provider in its own format, the user's own server, or nobody."""

PROVIDERS_OWN = "default"
"""The word that users write for a provider's default address."""

_VARIABLE_ENDINGS = ("_API_BASE", "_BASE_URL", "_API_URL", "_ENDPOINT", "_URL")

# Variables of providers that do not follow the pattern of name and ending, in litellm's order.
_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        "custom_openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        "cohere_chat": ("COHERE_API_BASE",),
        "fireworks_ai": ("FIREWORKS_API_BASE", "FIREWORKS_AI_API_BASE"),
        "huggingface": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
        "bedrock": ("AWS_BEDROCK_RUNTIME_ENDPOINT", "BEDROCK_API_BASE"),
        "vertex_ai": ("VERTEXAI_API_BASE", "VERTEX_API_BASE"),
        "watsonx": ("WATSONX_API_BASE", "WATSONX_URL", "WX_URL", "WML_URL"),
        "ollama": ("OLLAMA_API_BASE",),
        "ollama_chat": ("OLLAMA_API_BASE",),
    }
)

_HIDDEN_VARIABLES = re.compile(
    r"(?:API_BASE|API_BASE_\w+|BASE_URL|API_URL|API_HOST|RUNTIME_ENDPOINT|AGENT_ENDPOINT)$"
    r"|^(?:WATSONX_URL|WX_URL|WML_URL|DATAROBOT_ENDPOINT|OLLAMA_HOST)$"
    r"|^USE_LITELLM_PROXY$"  # not an address, but it redirects the models of every provider to another server
)

# litellm's other names for a provider, used for its other endpoints.
_SAME_PROVIDER: Mapping[str, str] = MappingProxyType(
    {
        "ollama_chat": "ollama",
        "cohere_chat": "cohere",
        "custom_openai": "openai",
        "text-completion-openai": "openai",
    }
)
# the providers used for llama.cpp and vLLM; other self-hosted servers cannot count
_OWN_SERVERS = frozenset({"openai", "custom_openai", "hosted_vllm", "llamafile"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

# The default hosts of the best known providers, for display.
_HOSTS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "api.anthropic.com",
        "openai": "api.openai.com",
        "gemini": "generativelanguage.googleapis.com",
        "mistral": "api.mistral.ai",
        "xai": "api.x.ai",
        "deepseek": "api.deepseek.com",
        "groq": "api.groq.com",
        "openrouter": "openrouter.ai",
        "cerebras": "api.cerebras.ai",
        "ollama": "localhost:11434",
        "ollama_chat": "localhost:11434",
    }
)


def address_in(environ: Mapping[str, str], model: str) -> str:
    """Return the address that `environ` names for the provider of `model`; empty if it names none."""
    ref = ModelRef.parse(model)
    provider = ref.served_by
    if not provider or ref.is_demo:
        return ""
    stem = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    names = _VARIABLES.get(provider) or tuple(f"{stem}{ending}" for ending in _VARIABLE_ENDINGS)
    found = next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")
    return found or (ollama_base(environ) if ref.is_ollama else "")


def hide_addresses(environ: MutableMapping[str, str]) -> None:
    """Remove every server address from `environ` that litellm would use."""
    for name in [name for name in environ if _HIDDEN_VARIABLES.search(name)]:
        del environ[name]


def keep_loopback_direct(environ: MutableMapping[str, str]) -> None:
    """Add this machine to the proxy exceptions in `environ`, so that local requests use no proxy."""
    exceptions = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    missing = [host for host in _LOOPBACK if host not in exceptions.split(",")]
    environ["no_proxy"] = ",".join([*filter(None, [exceptions.strip(" ,")]), *missing])


def is_same_provider(model: str, other: str) -> bool:
    """Return whether two models belong to the same provider, under any of its names."""
    names = [ModelRef.parse(one).served_by for one in (model, other)]
    first, second = (_SAME_PROVIDER.get(name, name) for name in names)
    return first == second


def without_credentials(address: str) -> str:
    """Return `address` in a form that is safe to store and show: no user, password or key in its query."""
    address = address.strip()
    try:
        parts = urlsplit(address)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return address.rpartition("@")[2]
    kept = [(name, value) for name, value in query if not is_secret_name(name)]
    return urlunsplit(
        parts._replace(
            netloc=parts.netloc.rpartition("@")[2],
            query=parts.query if kept == query else urlencode(kept),
        )
    )


def with_credentials(address: str, known: Iterable[str]) -> str:
    """Return the address from `known` that matches `address`, with its credentials; else `address` itself."""
    return next((one for one in known if one and without_credentials(one) == address), address)


def describe_server(model: str, address: str) -> str:
    """Describe where requests to `model` go: an address, or the provider's default host."""
    ref = ModelRef.parse(model)
    if ref.is_demo:
        return ""
    provider = ref.served_by
    return address or _HOSTS.get(provider) or f"{provider or 'the provider'}'s own address"


def may_report_window(model: str, address: str) -> bool:
    """Return whether the server of `model` may report its window: the user's own server, or OpenRouter."""
    ref = ModelRef.parse(model)
    if ref.is_demo:
        return False
    return bool(address) or ref.is_ollama or ref.served_by == "openrouter"


def token_counter(model: str, address: str | None) -> Counts:
    """Return who counts the tokens of requests to `model` at `address`; empty for nobody."""
    provider = ModelRef.parse(model).provider
    if provider == "anthropic":
        return "anthropic"
    if provider == "gemini":
        return "gemini"
    is_own = bool(address) and provider in _OWN_SERVERS and not answers_in_parallel(address or "")
    return "server" if is_own else ""


def is_private_address(address: str | None) -> bool:
    """Return whether the server at `address` runs on this machine or in a private network."""
    try:
        host = (urlsplit(address or "").hostname or "").lower()
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False
