"""Look up how long a provider's prompt cache keeps a prompt, by provider and model.

The rules follow the providers' pages of autumn 2026. If a provider names a range, its lower end is used.
Every read restarts the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from rolling_chat.context_keys import CacheTtl
from rolling_chat.providers.model_ref import ModelRef

SHORTEST: Final = 300.0
"""Seconds after which a cache counts as cold if the provider names no time: the shortest of all."""

_MINUTES, _HOURS = 60.0, 3_600.0


@dataclass(frozen=True, slots=True)
class CacheRule:
    """A provider's caching rule.

    `seconds` is how long a prompt stays cached after its last use, None if the provider names no time. A
    prompt of fewer than `least` tokens is not cached. `marked` means that only the part covered by
    `cache_control` marks is cached, at an extra price for writing. `counts_tool_choice` means that another
    `tool_choice` or reasoning effort invalidates the cached messages. `source` is the page that documents the
    rule.
    """

    seconds: float | None
    source: str
    least: int = 1_024
    marked: bool = False
    counts_tool_choice: bool = False


_ANTHROPIC = CacheRule(
    5 * _MINUTES,
    "https://platform.claude.com/docs/en/build-with-claude/prompt-caching",
    marked=True,
    counts_tool_choice=True,
)
_BEDROCK = replace(
    _ANTHROPIC, source="https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"
)
_OPENAI_PAGE = "https://developers.openai.com/api/docs/guides/prompt-caching"
_AZURE_PAGE = "https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/prompt-caching"
_GEMINI_PAGE = "https://ai.google.dev/gemini-api/docs/caching"

# First match wins: regular expressions for the provider's and the model's name, both in lower case.
_TABLE: tuple[tuple[str, str, CacheRule], ...] = (
    ("bedrock", "claude", _BEDROCK),
    ("", "claude", _ANTHROPIC),
    ("groq", "gpt-oss|kimi", CacheRule(2 * _HOURS, "https://console.groq.com/docs/prompt-caching", 128)),
    # `prompt_cache_options.ttl` has one value
    ("", r"gpt-(5\.[6-9]|5\.\d\d|[6-9]|\d\d)", CacheRule(30 * _MINUTES, _OPENAI_PAGE)),
    ("", r"gpt-5\.5", CacheRule(24 * _HOURS, _OPENAI_PAGE)),
    # Azure uses "24h" only for models that were configured for it
    ("azure", r"gpt-4o|gpt-4\.1|gpt-5|o[134]\b", CacheRule(5 * _MINUTES, _AZURE_PAGE)),
    # models with `prompt_cache_retention = "24h"`, the default for accounts without zero data retention
    (
        "",
        r"gpt-(4\.1|5|5\.[1-4])(-codex(-max|-mini)?|-pro|-chat-latest)?(-\d{4}-\d\d-\d\d)?$",
        CacheRule(24 * _HOURS, _OPENAI_PAGE),
    ),
    # in memory: 5 to 10 minutes of inactivity
    ("", r"gpt-4o|gpt-4\.1|gpt-5|chatgpt-4o|(^|/)o[134]\b", CacheRule(5 * _MINUTES, _OPENAI_PAGE)),
    # implicit caching: both pages promise savings but no time
    ("", r"gemini-2\.5", CacheRule(None, _GEMINI_PAGE, 2_048)),
    ("", r"gemini-([3-9]|flash|pro)", CacheRule(None, _GEMINI_PAGE, 4_096)),
    # on disk: cleared when unused, "usually within a few hours to a few days"
    ("deepseek", "", CacheRule(2 * _HOURS, "https://api-docs.deepseek.com/guides/kv_cache", 64)),
    # "can be evicted at any time"
    (
        "xai",
        "",
        CacheRule(None, "https://docs.x.ai/developers/advanced-api-usage/prompt-caching/best-practices"),
    ),
    # the implicit cache: "not guaranteed"
    ("dashscope", "qwen", CacheRule(None, "https://help.aliyun.com/en/model-studio/context-cache", 256)),
)
# OpenRouter sends a conversation to the same provider while its cache is warm, so the model maker's rule
# applies: https://openrouter.ai/docs/guides/best-practices/prompt-caching
_ROUTERS = frozenset({"openrouter"})


@lru_cache(maxsize=256)
def cache_rule(model: str, ttl: CacheTtl = "5m") -> CacheRule | None:
    """Return the caching rule for `model`; None if it is not known to have a cache.

    `ttl` is the time that Claude's cache marks request. A llama.cpp server or Ollama keeps the last prompt of
    a slot for free, so it needs no rule.
    """
    ref = ModelRef.parse(model)
    provider, name = ref.served_by, ref.name.lower()
    if provider in _ROUTERS:
        provider, _, _ = name.partition("/")
        provider = {"x-ai": "xai", "qwen": "dashscope"}.get(provider, provider)
    if ref.is_ollama or ref.is_demo:
        return None
    for server, pattern, rule in _TABLE:
        if (not server or provider.startswith(server)) and re.search(pattern, name):
            return replace(rule, seconds=_HOURS) if rule.marked and ttl == "1h" else rule
    return None
