"""What each model family takes and refuses on the wire: one row a family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from rolling_chat.providers.model_ref import ModelRef

CallIds: TypeAlias = Literal["any", "plain", "nine"]


@dataclass(frozen=True, slots=True)
class WireFamily:
    """One row of the wire's rules.

    `reasoning_back`: `reasoning_content` goes back with the messages it came with.
    `thinking_blocks`, `signatures`: signed reasoning goes back, to the very model that made it.
    `bridge`: a user message right after a tool result is refused.
    `call_ids`: "any" as they come; "plain" letters, digits, - and _ only; "nine" exactly nine letters
    and digits.
    `cache_marks`: prompts are cached up to `cache_control` marks. `cache_key`: a `prompt_cache_key`
    keeps a session's requests together. `prompt_cache`: the provider bills cached prompts for less.
    `max_tokens`: the provider needs an output limit with every request.
    `max_effort`: no higher reasoning effort is taken; litellm would switch it off for Ollama.
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

# Paths on which the server's own rules outweigh the model's.
_BY_PROVIDER: dict[str, WireFamily] = {
    "ollama": WireFamily("ollama", max_effort="high"),
    "ollama_chat": WireFamily("ollama", max_effort="high"),
    "demo": WireFamily("demo"),
    # refuse every field that is not OpenAI's, `reasoning_content` with them
    "groq": WireFamily("groq"),
    "cerebras": WireFamily("cerebras"),
    "mistral": _MISTRAL,
}
# First match in the lower-cased name wins, whoever serves the model.
_BY_NAME: tuple[tuple[tuple[str, ...], WireFamily], ...] = (
    (("claude",), _CLAUDE),
    (("gemini",), _GEMINI),
    (("deepseek",), _DEEPSEEK),
    (("kimi", "moonshot"), _KIMI),
    (("qwen", "qwq"), _QWEN),
    (("mistral", "mixtral", "codestral", "devstral", "magistral"), _MISTRAL),
    (("grok",), _GROK),
)
# Where the provider itself asks for an output limit, or reserves the whole window without one.
_NEED_MAX_TOKENS = frozenset({"anthropic", "bedrock", "openrouter"})


@lru_cache(maxsize=256)
def find_family(model: str) -> WireFamily:
    """Return the wire rules for `model`: its provider's own, if any, else its family's by name."""
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


def wants_max_tokens(model: str) -> bool:
    """Say whether `max_tokens` must go with every request to `model`."""
    return find_family(model).max_tokens or ModelRef.parse(model).provider in _NEED_MAX_TOKENS


def takes_result_pictures(model: str) -> bool:
    """Say whether a tool's result may have pictures; elsewhere they go below the results, as the user's."""
    return ModelRef.parse(model).provider == "anthropic"


def prompt_cache(model: str) -> bool:
    """Say whether the provider of `model` bills the part of a prompt that it has seen before for less."""
    return find_family(model).prompt_cache
