"""Where requests go: the address of a model's server, and what the environment says of it.

Litellm reads addresses from the environment at every request. A session keeps the address that it was
begun with, so the environment is read here, once, and hidden from litellm (`hide_addresses`).
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
"""Who counts: a provider in its own form, a server of the user's own, or nobody."""

PROVIDERS_OWN = "default"
"""What users write for the address that a provider has by itself."""

_ENDINGS = ("_API_BASE", "_BASE_URL", "_API_URL", "_ENDPOINT", "_URL")

# The variables of providers that do not go by their name and an ending, in litellm's order.
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

_HIDDEN = re.compile(
    r"(?:API_BASE|API_BASE_\w+|BASE_URL|API_URL|API_HOST|RUNTIME_ENDPOINT|AGENT_ENDPOINT)$"
    r"|^(?:WATSONX_URL|WX_URL|WML_URL|DATAROBOT_ENDPOINT|OLLAMA_HOST)$"
    r"|^USE_LITELLM_PROXY$"  # no address, but it sends the models of every provider to another server
)

# Names of litellm's for one provider, by its other endpoints.
_SAME_PROVIDER: Mapping[str, str] = MappingProxyType(
    {
        "ollama_chat": "ollama",
        "cohere_chat": "cohere",
        "custom_openai": "openai",
        "text-completion-openai": "openai",
    }
)
# what llama.cpp and vLLM are given as; other servers that people run cannot count
_OWN_SERVERS = frozenset({"openai", "custom_openai", "hosted_vllm", "llamafile"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

# The hosts that the best known providers have by themselves, to be shown.
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
    """Return the address that `environ` names for the provider of `model`; empty: the provider's own."""
    ref = ModelRef.parse(model)
    provider = ref.served_by
    if not provider or ref.is_demo:
        return ""
    stem = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    names = _VARIABLES.get(provider) or tuple(f"{stem}{ending}" for ending in _ENDINGS)
    found = next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")
    return found or (ollama_base(environ) if ref.is_ollama else "")


def hide_addresses(environ: MutableMapping[str, str]) -> None:
    """Take every address of a server out of `environ`, where litellm would find it."""
    for name in [name for name in environ if _HIDDEN.search(name)]:
        del environ[name]


def keep_loopback_direct(environ: MutableMapping[str, str]) -> None:
    """Add this machine to the proxy exceptions in `environ`, so that local requests use no proxy."""
    spared = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    missing = [host for host in _LOOPBACK if host not in spared.split(",")]
    environ["no_proxy"] = ",".join([*filter(None, [spared.strip(" ,")]), *missing])


def is_same_provider(model: str, other: str) -> bool:
    """Return whether two models belong to the same provider, under any of its names."""
    names = [ModelRef.parse(one).served_by for one in (model, other)]
    first, second = (_SAME_PROVIDER.get(name, name) for name in names)
    return first == second


def without_credentials(address: str) -> str:
    """Return `address` as it may be stored and shown: no user, no password, no key in its query."""
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
    """Return `address` as one of `known` has it, credentials included; as it is where none is the same."""
    return next((one for one in known if one and without_credentials(one) == address), address)


def place_of(model: str, address: str) -> str:
    """Describe where requests to `model` go: an address, or the host of the provider's own."""
    ref = ModelRef.parse(model)
    if ref.is_demo:
        return ""
    provider = ref.served_by
    return address or _HOSTS.get(provider) or f"{provider or 'the provider'}'s own address"


def names_windows(model: str, address: str) -> bool:
    """Return whether the server of `model` may say its window: one of the user's own, or OpenRouter's."""
    ref = ModelRef.parse(model)
    if ref.is_demo:
        return False
    return bool(address) or ref.is_ollama or ref.served_by == "openrouter"


def who_counts(model: str, address: str | None) -> Counts:
    """Return who counts the tokens of requests to `model` at `address`; empty for the provider's own."""
    provider = ModelRef.parse(model).provider
    if provider == "anthropic":
        return "anthropic"
    if provider == "gemini":
        return "gemini"
    is_own = bool(address) and provider in _OWN_SERVERS and not answers_in_parallel(address or "")
    return "server" if is_own else ""


def is_near(address: str | None) -> bool:
    """Return whether the server at `address` runs on this machine, or in a private network."""
    try:
        host = (urlsplit(address or "").hostname or "").lower()
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False
