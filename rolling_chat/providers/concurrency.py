"""Decide which servers are known to answer requests in parallel, and which may have a single slot."""

from __future__ import annotations

from urllib.parse import urlsplit

from rolling_chat.providers.known_providers import KNOWN_PROVIDERS
from rolling_chat.providers.model_ref import ModelRef

# Self-hosted servers: how many parallel requests they accept depends on the machine.
_SELF_HOSTED = frozenset(
    {"custom_openai", "hosted_vllm", "litellm_proxy", "llamafile", "lm_studio", "ollama", "ollama_chat"}
)
_HOSTED = frozenset(provider.name for provider in KNOWN_PROVIDERS) - _SELF_HOSTED

# The domains of hosted providers; any other address may be any kind of server.
_HOSTED_DOMAINS = (
    "amazonaws.com", "anthropic.com", "azure.com", "cerebras.ai", "cohere.ai", "cohere.com",
    "deepinfra.com", "deepseek.com", "fireworks.ai", "googleapis.com", "groq.com", "huggingface.co",
    "minimax.io", "mistral.ai", "moonshot.ai", "moonshot.cn", "novita.ai", "nvidia.com", "openai.com",
    "openrouter.ai", "perplexity.ai", "together.ai", "together.xyz", "x.ai", "z.ai",
)  # fmt: skip


def server_of(model: str, address: str | None) -> str:
    """Return the server that answers for `model`: its address, or else its provider's name."""
    return address or ModelRef.parse(model).provider


def answers_in_parallel(server: str) -> bool:
    """Return whether a server (from `server_of`) is known to answer several requests at once."""
    if "://" not in server:
        return server in _HOSTED
    try:
        host = urlsplit(server).hostname or ""
    except ValueError:
        return False
    return any(host == domain or host.endswith(f".{domain}") for domain in _HOSTED_DOMAINS)
