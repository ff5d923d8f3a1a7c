"""List the providers that this program knows, with their keys and first models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """A provider supported by litellm, identified by the prefix of its models' names.

    `keys` are the environment variables for its key, any one of which is enough; empty if no key is needed.
    `first_model` is the model to start with if only a key is set, empty if that is not enough; it supports
    tools and is in litellm's model table.
    """

    name: str
    keys: tuple[str, ...] = ()
    first_model: str = ""

    def key_in(self, environ: Mapping[str, str]) -> str:
        """Return the key in `environ` without surrounding white space; empty if there is none."""
        return next((key for name in self.keys if (key := environ.get(name, "").strip())), "")


class KeyedEnvironment(dict[str, str]):
    """Environment variables plus API keys from the keyring; `stored` has the names of the latter."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.stored: set[str] = set()


# In the order in which keys in the environment are searched for.
KNOWN_PROVIDERS: tuple[KnownProvider, ...] = (
    KnownProvider("anthropic", ("ANTHROPIC_API_KEY",), "anthropic/claude-sonnet-5-5"),
    KnownProvider("openai", ("OPENAI_API_KEY",), "openai/gpt-5.4"),
    KnownProvider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini/gemini-flash-latest"),
    KnownProvider("mistral", ("MISTRAL_API_KEY",), "mistral/mistral-large-latest"),
    KnownProvider("xai", ("XAI_API_KEY",), "xai/grok-4.5"),
    KnownProvider("deepseek", ("DEEPSEEK_API_KEY",), "deepseek/deepseek-v4-pro"),
    KnownProvider("groq", ("GROQ_API_KEY",), "groq/openai/gpt-oss-120b"),
    # OpenRouter's own router picks the model; its list changes too often for the table
    KnownProvider("openrouter", ("OPENROUTER_API_KEY",), "openrouter/openrouter/auto"),
    KnownProvider("cerebras", ("CEREBRAS_API_KEY",), "cerebras/gpt-oss-120b"),
    KnownProvider("moonshot", ("MOONSHOT_API_KEY",), "moonshot/kimi-k3"),
    KnownProvider("dashscope", ("DASHSCOPE_API_KEY",), "dashscope/qwen3.8-max"),
    KnownProvider("zai", ("ZAI_API_KEY",), "zai/glm-5.3"),
    KnownProvider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    KnownProvider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    KnownProvider("perplexity", ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY")),
    KnownProvider("cohere_chat", ("COHERE_API_KEY",)),
    KnownProvider("cohere", ("COHERE_API_KEY",)),
    KnownProvider("deepinfra", ("DEEPINFRA_API_KEY",)),
    KnownProvider("huggingface", ("HF_TOKEN", "HUGGINGFACE_API_KEY")),
    KnownProvider("nvidia_nim", ("NVIDIA_NIM_API_KEY",)),
    KnownProvider("sambanova", ("SAMBANOVA_API_KEY",)),
    KnownProvider("minimax", ("MINIMAX_API_KEY",)),
    KnownProvider("novita", ("NOVITA_API_KEY",)),
    KnownProvider("databricks", ("DATABRICKS_API_KEY",)),
    KnownProvider("azure", ("AZURE_API_KEY",)),
    KnownProvider("azure_ai", ("AZURE_AI_API_KEY",)),
    KnownProvider("bedrock", ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID")),
    KnownProvider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    KnownProvider("github", ("GITHUB_API_KEY",)),
    KnownProvider("github_copilot"),
    KnownProvider("hosted_vllm"),
    KnownProvider("lm_studio"),
    KnownProvider("llamafile"),
    KnownProvider("ollama"),
    KnownProvider("ollama_chat"),
    KnownProvider("litellm_proxy", ("LITELLM_PROXY_API_KEY",)),
    KnownProvider("custom_openai", ("OPENAI_API_KEY",)),
    KnownProvider("demo"),
)

OWN_CREDENTIALS = frozenset({"azure", "azure_ai", "bedrock", "vertex_ai", "databricks", "github_copilot"})
"""Providers whose credentials are more than one key: litellm finds them in the environment."""

KEYLESS_ELSEWHERE = frozenset({"openai", "custom_openai", "litellm_proxy"})
"""Providers that need no key at an address of the user's own."""
