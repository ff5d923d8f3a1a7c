"""Define what each model family accepts and refuses on the wire, one row per family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from rolling_chat.providers.model_ref import ModelRef

CallIds: TypeAlias = Literal["any", "plain", "nine"]


@dataclass(frozen=True, slots=True)
class WireFamily:
    """The wire rules of one model family.

    `reasoning_back`: `reasoning_content` is sent back with its messages.
    `thinking_blocks`, `signatures`: signed reasoning is sent back, but only to the model that made it.
    `bridge`: a user message directly after a tool result is refused.
    `call_ids`: "any" accepts all ids; "plain" only letters, digits, - and _; "nine" exactly nine letters and
    digits.
    `cache_marks`: prompts are cached up to `cache_control` marks.
    `cache_key`: a `prompt_cache_key` keeps a session's requests together.
    `prompt_cache`: the provider charges less for cached prompts.
    `max_tokens`: the provider requires an output limit with every request.
    `max_effort`: the highest reasoning effort that is accepted; litellm would turn it off for Ollama.
    """

    name: str
    reasoning_back: bool = False
    thinking_blocks: bool = False
    signatures: bool = False
    bridge: bool = False
    call_ids: CallIds = "any"
    cache_marks: bool = False
    cache_key: bool = False
    prompt_cache: bool = False
    max_tokens: bool = False
    max_effort: str = ""


_CLAUDE = WireFamily(
    "claude", thinking_blocks=True, call_ids="plain", cache_marks=True, prompt_cache=True, max_tokens=True
)
_GEMINI = WireFamily("gemini", signatures=True, prompt_cache=True, max_effort="high")
_MISTRAL = WireFamily("mistral", bridge=True, call_ids="nine")
_DEEPSEEK = WireFamily("deepseek", reasoning_back=True, prompt_cache=True)
_KIMI = WireFamily("kimi", reasoning_back=True, prompt_cache=True)
_QWEN = WireFamily("qwen", reasoning_back=True, prompt_cache=True)
_GROK = WireFamily("grok", prompt_cache=True)
_OPENAI = WireFamily("openai", cache_key=True, prompt_cache=True)
_OTHER = WireFamily("other")

# Providers whose own rules override the model's.
_BY_PROVIDER: dict[str, WireFamily] = {
    "ollama": WireFamily("ollama", max_effort="high"),
    "ollama_chat": WireFamily("ollama", max_effort="high"),
    "demo": WireFamily("demo"),
    # these refuse every field that is not OpenAI's, including `reasoning_content`
    "groq": WireFamily("groq"),
    "cerebras": WireFamily("cerebras"),
    "mistral": _MISTRAL,
}
# First match in the lower-cased name wins, regardless of the provider.
_BY_NAME: tuple[tuple[tuple[str, ...], WireFamily], ...] = (
    (("claude",), _CLAUDE),
    (("gemini",), _GEMINI),
    (("deepseek",), _DEEPSEEK),
    (("kimi", "moonshot"), _KIMI),
    (("qwen", "qwq"), _QWEN),
    (("mistral", "mixtral", "codestral", "devstral", "magistral"), _MISTRAL),
    (("grok",), _GROK),
)
# Providers that require an output limit, or reserve the whole window without one.
_NEED_MAX_TOKENS = frozenset({"anthropic", "bedrock", "openrouter"})


@lru_cache(maxsize=256)
def find_family(model: str) -> WireFamily:
    """Return the wire rules for `model`: its provider's own, if any, or else its family's by name."""
    provider = ModelRef.parse(model).provider
    if provider in _BY_PROVIDER:
        return _BY_PROVIDER[provider]
    name = model.lower()
    for words, family in _BY_NAME:
        if any(word in name for word in words):
            return family
    return _OPENAI if provider in {"openai", "azure"} else _OTHER


def family_of(model: str) -> str:
    """Return the name of the family of `model`."""
    return find_family(model).name


def requires_max_tokens(model: str) -> bool:
    """Return whether every request to `model` must include `max_tokens`."""
    return find_family(model).max_tokens or ModelRef.parse(model).provider in _NEED_MAX_TOKENS


def accepts_result_pictures(model: str) -> bool:
    """Return whether a tool result may contain pictures; otherwise they follow in a user message."""
    return ModelRef.parse(model).provider == "anthropic"


def prompt_cache(model: str) -> bool:
    """Return whether the provider of `model` charges less for a cached part of a prompt."""
    return find_family(model).prompt_cache
